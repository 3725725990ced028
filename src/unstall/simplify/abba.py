"""ABBA blocks: two conditions taken in turn, in one process by switching, or in two by pausing one for the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Protocol

import numpy as np

from unstall.child.experiments.interventions.base import Specification
from unstall.simplify import thresholds
from unstall.simplify.budget import ExperimentBudget
from unstall.simplify.controlled_process import ControlledProcess
from unstall.simplify.cpu_burner import CpuBurners
from unstall.simplify.experiment import Experiment, ExperimentResult
from unstall.simplify.segment import Segment
from unstall.statistics import abba_log_ratios


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
class StoppingRule:
    """When an experiment has blocks enough. A disturbed one is repeated, up to twice as many blocks in all."""

    most: int = thresholds.MOST_BLOCKS
    of_effect: float = thresholds.TIGHT_FOR_EFFECT
    """The interval's half-width over the effect."""

    def is_met(self, result: ExperimentResult) -> bool:
        """Whether the interval is tight, or the blocks are as many as may be."""
        many = len(result.log_ratios) >= self.most or result.blocks >= 2 * self.most
        return many or result.is_tight(self.of_effect)


class Conditions(Protocol):
    """The two conditions of an experiment, whichever way they are had."""

    def to_base(self) -> None: ...
    def to_arm(self) -> None: ...
    def segment(self) -> Segment: ...


class SwitchedConditions:
    """Both conditions in one process, switched between two steps."""

    def __init__(
        self, process: ControlledProcess, experiment: Experiment, pace: Pace, burners: CpuBurners | None = None
    ):
        self.process, self.experiment, self.pace, self.burners = process, experiment, pace, burners

    def to_base(self) -> None:
        if self.burners is not None:
            self.burners.pause()
        self._switch(self.experiment.base)

    def to_arm(self) -> None:
        self._switch(self.experiment.base + self.experiment.arm)
        if self.burners is not None:
            self.burners.resume()

    def segment(self) -> Segment:
        return self.process.run(self.pace.steps, self.pace.seconds, self.pace.step_s)

    def _switch(self, interventions: tuple[Specification, ...]) -> None:
        self.process.switch(list(interventions))
        seconds = self.pace.settle_s if self.experiment.touches_data else 0.0
        self.process.settle(self.pace.settle_steps, seconds, self.pace.step_s)


class PausedConditions:
    """The conditions in two processes that run in turn."""

    def __init__(self, base: ControlledProcess, arm: ControlledProcess, pace: Pace):
        self.base, self.arm, self.pace = base, arm, pace
        self.active = arm
        base.pause()

    def to_base(self) -> None:
        self._activate(self.base)

    def to_arm(self) -> None:
        self._activate(self.arm)

    def segment(self) -> Segment:
        return self.active.run(self.pace.steps, self.pace.seconds, self.pace.step_s)

    def _activate(self, process: ControlledProcess) -> None:
        if process is not self.active:
            self.active.pause()
            process.resume()
            self.active = process
        process.switch([])  # forget what was recorded before the pause
        process.settle(self.pace.settle_steps, self.pace.settle_s, self.pace.step_s)


def run_blocks(
    conditions: Conditions, result: ExperimentResult, pace: Pace, budget: ExperimentBudget, rule: StoppingRule
) -> Iterator[None]:
    """Take blocks, a yield after each, until they are enough or the time is up.

    What was taken stays in ``result`` when the program ends in the middle (ProgramEnded is raised): a block that is not
    whole does not count.
    """
    conditions.to_base()
    first = conditions.segment()
    while True:
        conditions.to_arm()
        arm = [conditions.segment(), conditions.segment()]
        conditions.to_base()
        base = [first, conditions.segment()]
        result.failure = result.failure or _diverged(base, arm)
        if result.failure is None:
            _add(result, base, arm, pace)
        if result.failure or rule.is_met(result) or budget.left < 0:
            return
        yield
        first = conditions.segment()


def _disturbed(segments: list[Segment], cores: float) -> bool:
    """Whether others came or went within a block: a rule that does not look at its ratio."""
    others = [segment.other_cores for segment in segments]
    return max(others) - min(others) > thresholds.OTHERS_CHANGED * cores


def _add(result: ExperimentResult, base: list[Segment], arm: list[Segment], pace: Pace) -> None:
    base_s = [segment.mean_s(pace.whole_epochs) for segment in base]
    arm_s = [segment.mean_s(pace.whole_epochs) for segment in arm]
    ratio = float(abba_log_ratios(base_s, arm_s)[0])
    disturbed = _disturbed(base + arm, pace.cores)
    (result.disturbed_log_ratios if disturbed else result.log_ratios).append(ratio)
    result.base_s.append(geometric_mean(base_s))
    result.arm_s.append(geometric_mean(arm_s))
    let_through = sum(segment.real_calls for segment in arm) / sum(len(segment.durations) for segment in arm)
    note = "some calls still ran: the gain may be larger"
    if let_through > thresholds.CALLS_LET_THROUGH and note not in result.notes:
        result.notes.append(note)


def _diverged(base: list[Segment], arm: list[Segment]) -> str | None:
    """A seam that is called more often a step than before: the stub has changed the course of the program."""
    for name in base[0].calls:
        before = float(np.mean([segment.calls[name] for segment in base]))
        after = float(np.mean([segment.calls[name] for segment in arm]))
        if after > thresholds.MORE_CALLS * before + 0.5:
            return f"the program behaves differently with it: {after:.1f} calls of {name} a step, not {before:.1f}"
    return None
