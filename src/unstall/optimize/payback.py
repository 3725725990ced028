"""When a change has won back what it costs at first: an epoch in which samples are made and kept, or compiling."""

from __future__ import annotations

import math
from dataclasses import dataclass


def epochs_to_pay(first: float, later: float) -> int | None:
    """By the end of which epoch a training is as fast as the original; None where it never is.

    Args:
        first: how many times as fast the first epoch is.
        later: how many times as fast each later one is.
    """
    if later <= 1:
        return None
    cost, won = 1 / first - 1, 1 - 1 / later
    return 1 + max(0, math.ceil(cost / won))


def told(first: float, later: float) -> str:
    """In words, for a person who knows how many epochs there will be."""
    epochs = epochs_to_pay(first, later)
    if epochs == 1:
        return "the first one is no slower"
    won_back = f"won back by epoch {epochs}" if epochs else "and is never won back"
    return f"the first one takes {1 / first:.2f}× as long, {won_back}"


@dataclass(frozen=True)
class StartCost:
    """What it costs that each run of a changed program compiles before its first steps."""

    first_s: float
    """Seconds by which the first run is late."""
    later_s: float
    """The same of later ones, which find most of it compiled."""
    before_s: float
    """Seconds for a step of the original."""
    after_s: float
    """The same of the changed program."""

    @property
    def steps_to_pay(self) -> float:
        """Steps by which a later run has won it back; infinite where it never does."""
        saved_s = self.before_s - self.after_s
        return max(0.0, self.later_s) / saved_s if saved_s > 0 else math.inf

    def told(self) -> str:
        """In words, for a person who knows how many steps there will be."""
        late = f"each run compiles for {max(0.0, self.later_s):.0f} s, the first for {max(0.0, self.first_s):.0f} s"
        if self.steps_to_pay == math.inf:
            return f"{late}, which is never won back"
        steps = math.ceil(self.steps_to_pay)
        return f"{late}: won back after {steps:,} steps, {steps * self.before_s:.0f} s of the original's"
