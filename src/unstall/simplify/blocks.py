"""ABBA blocks: two conditions taken in turn, in one process by switching, or in two by pausing one for the other."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unstall.simplify.burner import Burners
from unstall.simplify.laboratory import Laboratory
from unstall.simplify.segment import Segment
from unstall.simplify.trial import Outcome, Specification, Trial
from unstall.statistics import abba_log_ratios

_MOST_BLOCKS = 8
_BUSY_SHARE = 0.15  # of the machine's cores: a block is repeated when what others took changed by more within it
_MORE_CALLS = 1.5  # a seam that is called so much more often a step: the program takes another course


@dataclass
class Pace:
    """How long segments are, and how long a condition takes to settle; from what is known of the program."""

    step_s: float
    """What a step takes, roughly, in the slower condition."""
    steps: int
    """Steps in a segment, at least."""
    seconds: float
    """Seconds in a segment, at least."""
    settle_steps: int
    """Batches that were made under the condition before."""
    settle_s: float
    """What the workers take to fall quiet, or fill their queues, where the data is touched."""
    whole_epochs: bool = False
    """A segment holds whole epochs, so that what happens once in each counts."""
    cores: float = 1.0

    @property
    def block_s(self) -> float:
        """What a block takes, roughly and at most: four segments, two switches."""
        segment_s = max(self.seconds, (self.steps + 1) * self.step_s)
        return 4 * segment_s + 2 * ((self.settle_steps + 2) * self.step_s + self.settle_s)


@dataclass(frozen=True)
class Enough:
    """When a trial has blocks enough. One that others disturbed is repeated, up to twice as many blocks in all."""

    most: int = _MOST_BLOCKS
    of_effect: float = 0.1
    """The interval's half-width over the effect."""

    def of(self, outcome: Outcome) -> bool:
        """Whether it is tight, or the blocks are as many as may be."""
        many = len(outcome.log_ratios) >= self.most or outcome.blocks >= 2 * self.most
        return many or outcome.is_tight(self.of_effect)


class Pair(Protocol):
    """The two conditions of a trial, whichever way they are had."""

    def to_base(self) -> None: ...
    def to_arm(self) -> None: ...
    def segment(self) -> Segment: ...


class Switched:
    """Both conditions in one process, switched between two steps."""

    def __init__(self, lab: Laboratory, trial: Trial, pace: Pace, burners: Burners | None = None):
        self.lab, self.trial, self.pace, self.burners = lab, trial, pace, burners

    def to_base(self) -> None:
        if self.burners is not None:
            self.burners.pause()
        self._to(self.trial.base)

    def to_arm(self) -> None:
        self._to(self.trial.base + self.trial.arm)
        if self.burners is not None:
            self.burners.resume()

    def segment(self) -> Segment:
        return self.lab.run(self.pace.steps, self.pace.seconds, self.pace.step_s)

    def _to(self, interventions: tuple[Specification, ...]) -> None:
        self.lab.switch(list(interventions))
        seconds = self.pace.settle_s if self.trial.touches_data else 0.0
        self.lab.settle(self.pace.settle_steps, seconds, self.pace.step_s)


class Paused:
    """The conditions in two processes that run in turn."""

    def __init__(self, base: Laboratory, arm: Laboratory, pace: Pace):
        self.base, self.arm, self.pace = base, arm, pace
        self.active = arm
        base.pause()

    def to_base(self) -> None:
        self._to(self.base)

    def to_arm(self) -> None:
        self._to(self.arm)

    def segment(self) -> Segment:
        return self.active.run(self.pace.steps, self.pace.seconds, self.pace.step_s)

    def _to(self, lab: Laboratory) -> None:
        if lab is not self.active:
            self.active.pause()
            lab.resume()
            self.active = lab
        lab.switch([])  # forget what was recorded before the pause
        lab.settle(self.pace.settle_steps, self.pace.settle_s, self.pace.step_s)


def run_blocks(pair: Pair, outcome: Outcome, pace: Pace, deadline: float, enough: Enough) -> Iterator[None]:
    """Take blocks, a yield after each, until they are enough or the time is up.

    What was taken stays in ``outcome`` when the program ends in the middle (Ended is raised): a block that is not
    whole does not count.
    """
    pair.to_base()
    first = pair.segment()
    while True:
        pair.to_arm()
        arm = [pair.segment(), pair.segment()]
        pair.to_base()
        base = [first, pair.segment()]
        outcome.failure = outcome.failure or _diverged(base, arm)
        if outcome.failure is None:
            _add(outcome, base, arm, pace)
        if outcome.failure or enough.of(outcome) or time.monotonic() > deadline:
            return
        yield
        first = pair.segment()


def _disturbed(segments: list[Segment], cores: float) -> bool:
    """Whether others came or went within a block: a rule that does not look at its ratio."""
    others = [segment.other_cores for segment in segments]
    return max(others) - min(others) > _BUSY_SHARE * cores


def _add(outcome: Outcome, base: list[Segment], arm: list[Segment], pace: Pace) -> None:
    base_s = [segment.mean_s(pace.whole_epochs) for segment in base]
    arm_s = [segment.mean_s(pace.whole_epochs) for segment in arm]
    ratio = float(abba_log_ratios(base_s, arm_s)[0])
    (outcome.rough if _disturbed(base + arm, pace.cores) else outcome.log_ratios).append(ratio)
    outcome.base_s.append(_geometric(base_s))
    outcome.arm_s.append(_geometric(arm_s))
    real = sum(segment.real_calls for segment in arm) / sum(len(segment.durations) for segment in arm)
    if real > 0.05:
        note = "some calls were let through all the same: the gain may be larger"
        outcome.notes += [] if note in outcome.notes else [note]


def _diverged(base: list[Segment], arm: list[Segment]) -> str | None:
    """A seam that is called more often a step than before: the stub has changed the course of the program."""
    for name in base[0].calls:
        before = float(np.mean([segment.calls[name] for segment in base]))
        after = float(np.mean([segment.calls[name] for segment in arm]))
        if after > _MORE_CALLS * before + 0.5:
            return f"the program takes another course with it: {after:.1f} calls of {name} a step, not {before:.1f}"
    return None


def _geometric(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


@contextlib.contextmanager
def placebo(lab: Laboratory, workers: int, seconds_per_batch: float, prefetch: int) -> Iterator[Burners]:
    """Burners for a laboratory's program, in no account of what others took."""
    main = lab.session.main
    assert main is not None
    path = lab.directory / f"rec-{main.pid}.bin"
    with Burners(path, workers=workers, seconds_per_batch=seconds_per_batch, prefetch=prefetch) as burners:
        lab.session.resources.ignore |= burners.pids
        yield burners
