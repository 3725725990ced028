"""Run a program of the zoo into its second epoch; print its rate there, and that of the first.

    python bench/later.py SECONDS program.py [arguments]

For `make optimize-bench`: a cache pays from the second visit of a sample on, and the first epoch may take minutes. The
rates are by the ticks of the program's own clock, which is stopped SECONDS after the loop has begun to read its loader
for the second time. Of a program that ends by itself after one epoch, that one is all there is: there is no first one.
"""

from __future__ import annotations

import atexit
import functools
import math
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import ticks

_LONGEST_S = 500.0
_SKIPPED = 3  # ticks at the beginning of an epoch


class Epochs:
    """When each epoch began, and the ticks in it: (time, steps)."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.epochs: list[list[ticks.Tick]] = []
        self.is_cut = False
        """Whether it took too long."""

    def open(self) -> None:
        self.epochs.append([])

    def tick(self, tick: ticks.Tick) -> None:
        if self.epochs:
            self.epochs[-1].append(tick)

    def over(self, seconds: float) -> bool:
        """Whether enough of the second epoch, and of those after it, was seen."""
        now = time.monotonic()
        later = [at for epoch in self.epochs[1:] for at, _ in epoch]
        self.is_cut = now - self.began > _LONGEST_S
        return self.is_cut or (len(later) > 2 * _SKIPPED and now - later[0] >= seconds)

    def rates(self) -> tuple[float, float]:
        """Steps a second in the first epoch, and in all later ones together."""
        first = self.epochs[0] if self.epochs else []
        later = [tick for epoch in self.epochs[1:] for tick in epoch]
        if len(self.epochs) == 1 and not self.is_cut:
            return math.nan, ticks.rate(first[_SKIPPED:])
        return ticks.rate(first[_SKIPPED:]), ticks.rate(later[_SKIPPED:])


def watch(seconds: float) -> Epochs:
    """Hooks at the zoo's clock and at torch's loader; the clock is done when the epochs are."""
    from torch.utils.data import DataLoader

    seen = Epochs()
    read = DataLoader.__iter__

    @functools.wraps(read)
    def opened(self: Any) -> Any:
        seen.open()
        return read(self)

    DataLoader.__iter__ = opened
    ticks.watch(seen.tick).done = property(lambda self: seen.over(seconds))
    return seen


def tell(seen: Epochs) -> None:
    """Print both rates."""
    first, later = seen.rates()
    print(f"first_epoch={first:.3f} later_epochs={later:.3f}", flush=True)


def main() -> None:
    """Become the program."""
    seconds, script, *words = sys.argv[1:]
    sys.argv = [script, *words]
    sys.path[0] = str(Path(script).resolve().parent)
    atexit.register(tell, watch(float(seconds)))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
