"""How many environments a policy acts in at once."""

from __future__ import annotations

import numpy as np

from unstall.benchmark.reader import ProcessRecording, starts
from unstall.benchmark.steps import main_spans
from unstall.child.layout import MODULE
from unstall.records.vocabulary import Tick


def environments(process: ProcessRecording) -> int:
    """Environments in one call of ``step``: those of the largest vector that was seen, 1 without any."""
    return max((int(fact.get("num_envs") or 1) for fact in process.facts.get("env", [])), default=1)


def observations(process: ProcessRecording) -> int:
    """Observations that a call of the model answers: of a vector, or of several environments stepped in turn.

    The median, over the stretches between two calls of the model, of the environments that are stepped in one.
    """
    spans = main_spans(process)
    spans = spans[spans["flags"] & MODULE == 0]
    forwards = spans[np.isin(spans["name"], process.counting(Tick.FORWARD))]
    steps = spans[np.isin(spans["name"], process.counting(Tick.ENV))]
    if not len(forwards) or not len(steps):
        return environments(process)
    stretch = np.searchsorted(starts(forwards), starts(steps))
    pairs = np.unique(np.stack([stretch.astype(np.uint64), steps["arg"]]), axis=1)
    _, in_turn = np.unique(pairs[0], return_counts=True)
    return environments(process) * int(np.median(in_turn))
