"""Is memory growing, at what rate, and which line of the user's makes it grow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from unstall.diagnose.thresholds import (
    FLOOR_RISE,
    FREE_LOOKS,
    GROWTH_POINTS,
    GROWTH_STEPS,
    MOST,
    PLATEAU,
    RELEASE_POINTS,
    TAIL_BYTES,
    TAIL_BYTES_PER_STEP,
    TOOTH,
)
from unstall.records.measurements import MemoryMeasurement
from unstall.statistics import columns, slope

_Series = Sequence[tuple[float, float]]
_Array = npt.NDArray[np.float64]


class Trend(NamedTuple):
    """How a series of memory in use, in bytes by step, behaves after its warm-up."""

    kind: Literal["steady", "plateau", "sawtooth", "flat", "short"]
    bytes_per_step: float
    low: float
    """Lower end of the rate's 95 % interval."""
    high: float


def is_growing(
    series_by_step: _Series,
    min_bytes_per_step: float = TAIL_BYTES_PER_STEP,
    *,
    min_total_bytes: float = TAIL_BYTES,
) -> bool:
    """Whether memory grows steadily: neither a warm-up that ends, nor rise and release in turn."""
    return assess(series_by_step, min_bytes_per_step, min_total_bytes=min_total_bytes)[0] == "steady"


def is_fragmentation(memory: MemoryMeasurement, bytes_per_step: float) -> bool:
    """Whether resident memory that grows at this rate is mostly what the program has freed; no where that is not known.

    Freed pieces lie between others that are in use, and what later steps ask for does not fit: sizes that differ from
    step to step, of sequences or of the rows that an expert gets, do that for hundreds of steps.
    """
    if len({step for step, _ in memory.free_by_step}) < FREE_LOOKS:
        return False
    return slope(memory.free_by_step)[0] > MOST * bytes_per_step


def is_filling(memory: MemoryMeasurement, bytes_per_step: float) -> bool:
    """Whether resident memory that grows at this rate is mostly what was allocated before; no where that is not known.

    Pages become resident when they are first touched: those of an array that is allocated whole and filled step by
    step, a replay buffer say, or of a file that is mapped. It ends when all of them are.
    """
    if len(memory.mapped_by_step) < GROWTH_POINTS:
        return False
    return slope(memory.mapped_by_step)[0] < (1 - MOST) * bytes_per_step


def assess(
    series_by_step: _Series,
    min_bytes_per_step: float = TAIL_BYTES_PER_STEP,
    *,
    min_total_bytes: float = TAIL_BYTES,
) -> Trend:
    """Tell how memory behaves in the second half of a series, when caches have filled.

    Args:
        series_by_step: (step, bytes) points, at least 8.
        min_bytes_per_step: a smaller rate is ``flat``.
        min_total_bytes: so is a smaller rise over the second half.

    Returns:
        The kind, and the rate of the floor: of what stays in use after each release.
    """
    swing = _range(columns(series_by_step))
    x, y = columns(floors(series_by_step))
    if len(x) < GROWTH_POINTS or x[0] == x[-1]:
        return Trend("short", 0.0, -math.inf, math.inf)
    tail = x >= (x[0] + x[-1]) / 2
    before, x, y = y[0], x[tail], y[tail]
    if x[0] == x[-1]:
        return Trend("short", 0.0, -math.inf, math.inf)
    if y.max() - y.min() < min_total_bytes:
        rose = y.min() - before >= min_total_bytes
        return Trend("plateau" if rose else "flat", *slope(np.column_stack((x, y)).tolist()))
    if x[-1] - x[0] < GROWTH_STEPS:
        return Trend("short", 0.0, -math.inf, math.inf)
    end = _last_release(y)
    released = end < len(y)
    if end < GROWTH_POINTS // 2 or x[0] == x[end - 1]:
        return Trend("sawtooth" if released else "short", 0.0, -math.inf, math.inf)
    # What is released later was not kept: the floor is the least that is in use from here on.
    floor = np.minimum.accumulate(y[:end][::-1])[::-1]
    x = x[:end]
    rate, low, high = slope(np.column_stack((x, floor)).tolist())
    total = rate * (x[-1] - x[0])
    least = max(min_total_bytes, FLOOR_RISE * swing)
    if low > 0 and rate >= min_bytes_per_step and total >= least:
        return Trend("plateau" if _slows(x, floor) else "steady", rate, low, high)
    return Trend("sawtooth" if released else "flat", rate, low, high)


def floors(series_by_step: _Series) -> list[tuple[float, float]]:
    """Of the readings within each step the least: what a step, or an evaluation in it, gives back is not kept."""
    least: dict[int, tuple[float, float]] = {}
    for step, value in series_by_step:
        whole = math.ceil(step)
        if whole not in least or value < least[whole][1]:
            least[whole] = step, value
    return list(least.values())


def _range(readings: tuple[_Array, _Array]) -> float:
    """Bytes between the least and the most of the second half of all readings, those within a step too."""
    x, y = readings
    tail = y[x >= (x[0] + x[-1]) / 2] if len(x) else y
    return float(np.ptp(tail)) if len(tail) else 0.0


def _last_release(y: _Array) -> int:
    """Index after the bottom of the last great fall; the length if there is no fall."""
    least = TOOTH * (y.max() - y.min())
    bottoms = [
        lag + int(falls[-1])
        for lag in range(1, int(RELEASE_POINTS) + 1)
        if len(falls := np.flatnonzero(y[:-lag] - y[lag:] > least))
    ]
    return max(bottoms) + 1 if bottoms else len(y)


def _slows(x: _Array, y: _Array) -> bool:
    """Whether the second half rises at less than 0.4 of the first half's rate."""
    middle = (x[0] + x[-1]) / 2
    early, late = x <= middle, x >= middle
    before, after = ((y[half][-1] - y[half][0]) / max(x[half][-1] - x[half][0], 1e-12) for half in (early, late))
    return bool(after < PLATEAU * before)
