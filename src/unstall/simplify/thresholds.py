"""Every threshold of the experiments: its value, its unit, and why it is that."""

from __future__ import annotations

from typing import Annotated

from unstall import threshold
from unstall.threshold import Factor, Seconds, Share, Steps

LogRatio = Annotated[float, "half-width in logarithms of a ratio"]
Blocks = Annotated[int, "ABBA blocks"]

# What is tried.
MIN_SHARE: Annotated[Share, "less of the step, or of a process's samples, cannot be told from noise in a minute"] = 0.05
DELAY_SHARE: Annotated[Share, "by which a component is slowed: well above noise, and still near what it was"] = 0.5

# The first run, which is only watched.
WATCHED_STEPS: Annotated[Steps, "a stable mean step; four times as many where steps are short"] = 40
WATCHED_SAMPLES: Annotated[int, "stack samples", "shares within a few per cent, which predictions rest on"] = 300
WATCHED_S: Annotated[Seconds, "of the loop, after which fewer steps will do"] = 6.0
LEAST_WATCHED_STEPS: Annotated[Steps, "fewer have no mean worth the name"] = 8
LONGEST_WATCH_S: Annotated[Seconds, "of the loop: a slow program needs the rest for its experiments"] = 25.0

# Segments and blocks.
SEGMENT_S: Annotated[Seconds, "long enough for a mean, short enough for many blocks"] = 0.5
SEGMENT_STEPS: Annotated[Steps, "at least, where a step takes long"] = 4
MOST_SEGMENT_STEPS: Annotated[Steps, "of very short steps, half a second holds enough"] = 2000
LONGEST_EPOCH_S: Annotated[Seconds, "whole epochs up to this make a segment, else the steps between ends"] = 2.5
LONGEST_SETTLING_S: Annotated[Seconds, "for loader workers to fall quiet or to fill their queues"] = 10.0
WARM_UP_STEPS: Annotated[Steps, "of each new process, with the seconds below"] = 6
WARM_UP_S: Annotated[Seconds, "kernels are chosen, allocators and page caches fill"] = 1.0
MOST_BLOCKS: Annotated[Blocks, "of an experiment, before others have had their turn"] = 8
MOST_BLOCKS_OF_SETTINGS: Annotated[Blocks, "two processes warm up for each, which takes longer"] = 4
FEWEST_BLOCKS: Annotated[Blocks, "undisturbed ones that stand by themselves; the variance of fewer is not known"] = 3
OTHERS_CHANGED: Annotated[Share, "of the cores, by which other programs may come or go within a block"] = 0.15
MORE_CALLS: Annotated[Factor, "as many calls of a seam a step: the program takes another course"] = 1.5
CALLS_LET_THROUGH: Annotated[float, "calls a step", "that a stub may let through before it is worth a note"] = 0.05

MOST_ANSWERING: Annotated[Share, "of a step, that a stub's answers are taken to have cost: a rough figure beyond"] = 0.8
NOTED_ANSWERING: Annotated[Share, "of a step that the answers took, from which on it is told"] = 0.05

# When a ratio is known.
TIGHT: Annotated[LogRatio, "± 5 %: what machines drift by between two minutes"] = 0.05
TIGHT_FOR_EFFECT: Annotated[Share, "of the effect: a large one need not be known to ± 5 %"] = 0.1
SHARPER: Annotated[Share, "of the effect, to which ceilings are known if there is time left"] = 0.05
SHARPER_BLOCKS: Annotated[Blocks, "at a time, while the vaguest ceiling is sharpened"] = 4
SHARPEST_BLOCKS: Annotated[Blocks, "in all: the interval shrinks with the root of their number"] = 24
WORTH_SHARPENING: Annotated[Factor, "as fast: smaller ceilings change no decision"] = 1.1
WORTH_DEEPER: Annotated[Factor, "as fast without it: what gains less hides nothing behind it"] = 1.1
MOST_DEEPER: Annotated[int, "experiments", "behind the costliest component: further down nobody looks"] = 2
HIGH_CONFIDENCE: Annotated[LogRatio, "an interval that no verdict hangs on"] = 0.15
VAGUE_SUM: Annotated[float, "half-width", "of a sum of elasticities from which nothing can be read"] = 0.3

# The budget.
EXPERIMENT_S: Annotated[Seconds, "that an experiment may take although others wait"] = 40.0
BLOCKS_TO_BEGIN: Annotated[Blocks, "that must still fit: fewer would tell nothing"] = 3
STARTS_WITHOUT_BLOCK: Annotated[int, "starts", "without a whole block between: it is too short, or does not go on"] = 2

# The verdict.
WORTH = threshold.WORTH
TAKES_OVER: Annotated[Factor, "the gain of the verdict's component, for another to be blamed instead"] = 1.15
DISAGREEMENT: Annotated[Factor, "between estimate and measurement, from which on both are told"] = 1.25
