"""What is tried, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from unstall.statistics import Ratio, anytime

Specification = dict[str, Any]
_FEW = 3  # blocks
TIGHT = 0.05
"""Half-width, in logarithms, at which an interval is tight enough; a share of the effect where that is more."""


@dataclass(frozen=True)
class Trial:
    """A comparison of two conditions of the program, base and arm."""

    name: str
    """As a person reads it: ``without Photos.decode``."""
    intervention: str
    """stub, cached, placebo, delay, sleep, threads, setting, ..."""
    arm: tuple[Specification, ...]
    base: tuple[Specification, ...] = ()
    component: str | None = None
    """What is free in the arm, if something is: the trial then gives its ceiling."""
    touches_data: bool = False
    """Loader workers need time to fall quiet, or to fill their queues."""
    placebo: bool = False
    """The arm runs with burners in place of the workers."""
    settings: Specification | None = None
    """The arm is another process, started with these settings."""
    share: float | None = None
    """Of a delay: by which share of its own time the component is slowed."""


@dataclass
class Outcome:
    """The blocks of a trial so far."""

    trial: Trial
    log_ratios: list[float] = field(default_factory=list)
    """Of the blocks that nothing disturbed."""
    rough: list[float] = field(default_factory=list)
    """Of those in which other programs came or went: used only where there are too few of the others."""
    base_s: list[float] = field(default_factory=list)
    """Seconds a step in the base, one a block."""
    arm_s: list[float] = field(default_factory=list)
    places: set[str] = field(default_factory=set)
    """Of the functions that the arm stands in for: file and line."""
    failure: str | None = None
    """Why there is no result to believe."""
    notes: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> Ratio | None:
        """Base over arm; above 1 the arm is faster. Valid although it was looked at after each block."""
        values = self.log_ratios if len(self.log_ratios) >= _FEW else self.log_ratios + self.rough
        return anytime(values) if values and self.failure is None else None

    @property
    def disturbed(self) -> int:
        """How many blocks others disturbed."""
        return len(self.rough)

    @property
    def blocks(self) -> int:
        """All that were taken."""
        return len(self.log_ratios) + len(self.rough)

    def is_tight(self, of_effect: float) -> bool:
        """Whether the interval's half-width is no more than this share of the effect, or :data:`TIGHT`."""
        ratio = self.ratio
        if ratio is None or len(self.log_ratios) < _FEW:
            return False
        return ratio.half_width <= max(TIGHT, abs(math.log(ratio.value)) * of_effect)

    @property
    def state(self) -> Literal["measured", "inconclusive", "failed"]:
        """``inconclusive``: noise could explain what was seen, and could hide an effect that matters."""
        ratio = self.ratio
        if ratio is None or ratio.blocks < 2:
            return "failed" if self.failure else "inconclusive"
        if ratio.excludes(1.0) or ratio.half_width <= 2 * TIGHT:
            return "measured"
        return "inconclusive"
