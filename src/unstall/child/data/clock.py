"""What a stretch of code takes: wall time, time on a core, and time on none. Standard library only."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Cost:
    """Seconds, summed over ``count`` items."""

    count: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    blocked_s: float = 0.0
    """Neither on a core nor waiting for one: disk, network, locks, sleep."""

    @property
    def taken_s(self) -> float:
        """On a core or blocked: without the time that it waited for a core that others had."""
        return self.cpu_s + self.blocked_s

    def per_item(self) -> dict[str, float]:
        """Seconds an item, for a line of facts."""
        count = max(self.count, 1)
        return {
            "taken_s": self.taken_s / count,
            "cpu_s": self.cpu_s / count,
            "blocked_s": self.blocked_s / count,
        }


def timed(cost: Cost, items: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function, add what it took for so many items, and return what it returns."""
    delay, core, began = run_delay_s(), time.thread_time(), time.perf_counter()
    result = function(*args, **kwargs)
    wall = time.perf_counter() - began
    core = time.thread_time() - core
    waited = run_delay_s() - delay
    cost.count += items
    cost.wall_s += wall
    cost.cpu_s += min(core, wall)
    cost.blocked_s += max(0.0, wall - core - waited)
    return result


def run_delay_s() -> float:
    """Seconds that this thread was ready to run and had no core; 0 where the system does not tell."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
