"""An experiment, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from unstall.child.experiments.interventions.base import Specification
from unstall.simplify import thresholds
from unstall.statistics import Ratio, anytime


@dataclass(frozen=True)
class Experiment:
    """A comparison of two conditions of the program, base and arm."""

    name: str
    """The name as a person reads it: ``without Photos.decode``."""
    intervention: str
    """The kind: the name of an intervention, or ``placebo``, ``interaction``, or one of :data:`plan.SETTINGS`."""
    arm: tuple[Specification, ...] = ()
    """Interventions that are in force in the arm alone."""
    base: tuple[Specification, ...] = ()
    """Interventions that are in force in both."""
    component: str | None = None
    """What is free in the arm, or slowed, if something is: freed, its ratio is the component's ceiling."""
    touches_data: bool = False
    """Loader workers need time to fall quiet, or to fill their queues."""
    placebo: bool = False
    """In the arm, processes that only burn CPU time run in the place of the loader's workers."""
    settings: Specification | None = None
    """The arm is another process, started with these settings."""
    share: float | None = None
    """The share of its own time by which a delay slows the component."""


@dataclass
class ExperimentResult:
    """The blocks of an experiment so far."""

    experiment: Experiment
    log_ratios: list[float] = field(default_factory=list)
    """Base over arm, of the blocks that nothing disturbed."""
    disturbed_log_ratios: list[float] = field(default_factory=list)
    """Log ratios of blocks in which other programs came or went: used only where there are too few of the others."""
    base_s: list[float] = field(default_factory=list)
    """Seconds a step in the base, one a block."""
    arm_s: list[float] = field(default_factory=list)
    """The same in the arm."""
    answering_s: float = 0.0
    """Of the arm's, what the stubs' answers take in the main process: a function that is free takes nothing."""
    replaced: set[str] = field(default_factory=set)
    """File and line of the functions that the arm stands in for."""
    failure: str | None = None
    """Why there is no result to believe."""
    notes: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> Ratio | None:
        """Base over arm; above 1 the arm is faster. The interval holds although it was looked at after each block."""
        values = self.log_ratios
        if len(values) < thresholds.FEWEST_BLOCKS:
            values = values + self.disturbed_log_ratios
        if not values or self.failure is not None:
            return None
        return anytime([value + self._answered_log for value in values])

    @property
    def _answered_log(self) -> float:
        """What the answers' time adds to a log ratio."""
        return -math.log1p(-self.answering_share)

    @property
    def answering_share(self) -> float:
        """Share of the arm's step that the stubs' answers took, which the ratio leaves out."""
        if not self.arm_s:
            return 0.0
        return min(self.answering_s * len(self.arm_s) / sum(self.arm_s), thresholds.MOST_ANSWERING)

    @property
    def blocks(self) -> int:
        """All blocks that were taken."""
        return len(self.log_ratios) + len(self.disturbed_log_ratios)

    def is_tight(self, of_effect: float) -> bool:
        """Whether the interval's half-width is no more than this share of the effect, or :data:`thresholds.TIGHT`."""
        ratio = self.ratio
        if ratio is None or len(self.log_ratios) < thresholds.FEWEST_BLOCKS:
            return False
        return ratio.half_width <= max(thresholds.TIGHT, abs(math.log(ratio.value)) * of_effect)

    @property
    def state(self) -> Literal["measured", "inconclusive", "failed"]:
        """``inconclusive``: noise could explain what was seen, and could hide an effect that matters."""
        ratio = self.ratio
        if ratio is None or ratio.blocks < 2:
            return "failed" if self.failure else "inconclusive"
        if ratio.excludes(1.0) or ratio.half_width <= 2 * thresholds.TIGHT:
            return "measured"
        return "inconclusive"
