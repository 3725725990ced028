"""How much runs of the same code differ from each other on one machine, as the ledger has seen it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unstall import statistics
from unstall.records.comparison import Entry
from unstall.repeat.thresholds import FEWEST_DEGREES
from unstall.statistics import Ratio


@dataclass(frozen=True)
class Noise:
    """The spread of the speed from run to run."""

    deviation: float
    """Standard deviation of the logarithm of steps/s: 0.03 is about 3 %."""
    degrees: int
    """Degrees of freedom that it rests on."""

    def widen(self, ratio: Ratio, *, level: float = 0.95) -> Ratio:
        """The interval of a ratio of two single runs, at least as wide as two runs of one code would make it.

        The difference of two draws has √2 times the deviation of one. What the steps within the runs tell may be
        wider, and then it stands.
        """
        quantile = statistics.student_quantile((1 + level) / 2, self.degrees)
        half = quantile * math.sqrt(2) * self.deviation
        log = math.log(ratio.value)
        low, high = min(ratio.low, math.exp(log - half)), max(ratio.high, math.exp(log + half))
        return Ratio(ratio.value, low, high, ratio.blocks)


def of_runs(entries: Iterable[Entry]) -> Noise | None:
    """Pooled over all sets of runs of one command and one code on one host; None where too few were repeated.

    Runs without a known revision tell nothing: the code may have changed between them.
    """
    groups: defaultdict[tuple[object, ...], list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "run" and entry.revision and entry.steps_per_s and entry.steps_per_s > 0:
            key = (entry.host, tuple(entry.command), entry.revision, entry.changes)
            groups[key].append(math.log(entry.steps_per_s))
    squares = sum(float(np.square(np.array(speeds) - np.mean(speeds)).sum()) for speeds in groups.values())
    degrees = sum(len(speeds) - 1 for speeds in groups.values())
    return Noise(math.sqrt(squares / degrees), degrees) if degrees >= FEWEST_DEGREES else None
