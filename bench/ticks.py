"""The ticks of the zoo's clock, as (monotonic seconds, steps): how the benches watch a program from outside."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

Tick = tuple[float, int]


def watch(note: Callable[[Tick], None]) -> Any:
    """Be told every tick from now on; the class of the clock. For a process that is about to become the program."""
    clock: Any = importlib.import_module("common").Clock
    tick = clock.tick

    def noted(self: Any, steps: int = 1) -> None:
        note((time.monotonic(), steps))
        tick(self, steps)

    clock.tick = noted
    return clock


def rate(ticks: Sequence[Tick]) -> float:
    """Steps a second between the first tick and the last; NaN for fewer than two."""
    if len(ticks) < 2:
        return float("nan")
    return sum(steps for _, steps in ticks[1:]) / (ticks[-1][0] - ticks[0][0])
