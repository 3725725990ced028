"""Memory that grows to the end of a run: a longer one would not end, or not on the same machine.

Of a cache that fills in the first epoch this is not true, nor of what is made at the start. So the last half of the
run is looked at, in which the resident memory of the main process has to grow from each quarter to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from unstall.prove import thresholds
from unstall.prove.runner import WholeRun
from unstall.prove.timing import Pair

_QUARTERS = 4
_LEAST_SAMPLES = 4 * _QUARTERS


def growing(pairs: Sequence[Pair]) -> str | None:
    """How the changed program's memory grows in all of these watched runs, in words; None where it does not.

    What grows in the original as well is no matter of the change.
    """
    grown = [(growth_of(_memory(pair.original)), growth_of(_memory(pair.changed))) for pair in pairs]
    if not grown:
        return None
    for before, after in grown:
        if after is None or after < thresholds.GROWTH_OVER * (before or 0.0):
            return None
    least = min(after for _, after in grown if after is not None)
    return (
        f"its memory grows to the end of the run, by {least / 1e6:.0f} MB in the last half, which the original's does "
        "not: longer runs may not end"
    )


def growth_of(memory: Sequence[float]) -> float | None:
    """Bytes that are more in the last quarter of the last half of a run than in its first; None where none to speak of.

    Args:
        memory: bytes, at equal distances in steps.
    """
    half = memory[len(memory) // 2 :]
    if len(half) < _LEAST_SAMPLES:
        return None
    length = len(half) // _QUARTERS
    levels = [median(half[number * length : (number + 1) * length]) for number in range(_QUARTERS)]
    if not all(before < after for before, after in pairwise(levels)):
        return None
    growth = levels[-1] - levels[0]
    return growth if growth > thresholds.LEAST_GROWTH * levels[0] else None


def _memory(run: WholeRun) -> Sequence[float]:
    return (run.account or {}).get("memory", ())
