"""Wall-clock time that may be spent."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Monotonic seconds."""


class ExperimentBudget:
    """Seconds from now on. ``clock`` is read whenever somebody asks what is left."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic):
        self.clock = clock
        self.ends = clock() + seconds

    @property
    def left(self) -> float:
        """Seconds; negative once it is overspent."""
        return self.ends - self.clock()

    def allows(self, seconds: float) -> bool:
        """Whether something that takes so long would end in time."""
        return self.left >= seconds

    def part(self, seconds: float) -> ExperimentBudget:
        """A budget of its own for one thing, which ends with the whole one at the latest."""
        return ExperimentBudget(min(seconds, self.left), self.clock)
