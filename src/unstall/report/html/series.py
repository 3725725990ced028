"""Long series made short enough for a page, without hiding what stands out.

A bucket of neighbouring values becomes its smallest, its mean and its largest, so that a single slow step among a
million is still drawn. The extremes of every pixel column are what keeps a line chart free of errors, see Jugel et
al., "M4: A Visualization-Oriented Time Series Data Aggregation", PVLDB 7(10), 2014.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

MOST_BUCKETS = 6000
"""More than a screen has columns, so that one can zoom in: a million steps are buckets of 167."""

_FEWEST_BINS, _MOST_BINS = 12, 80
_LONG_TAIL = 0.995


class Extremes(NamedTuple):
    """Of each bucket, shape (buckets,)."""

    low: Floats
    mean: Floats
    high: Floats


class Histogram(NamedTuple):
    """Counts by bin; the last bin also holds whatever is beyond it."""

    edges: Floats
    """Shape (bins + 1,)."""
    counts: Ints
    beyond: int
    """Values larger than the last edge, counted in the last bin."""


def bucket_edges(count: int, most: int = MOST_BUCKETS) -> Ints:
    """Where each bucket begins, and the end: equal ones but for rounding, one a value where there are few."""
    return np.linspace(0, count, min(count, most) + 1).round().astype(np.int64)


def extremes(values: Floats, edges: Ints) -> Extremes:
    """Smallest, mean and largest value of each bucket; ``edges`` as :func:`bucket_edges` makes them."""
    begins = edges[:-1]
    return Extremes(
        np.minimum.reduceat(values, begins),
        np.add.reduceat(values, begins) / np.diff(edges),
        np.maximum.reduceat(values, begins),
    )


def means(values: Floats, edges: Ints) -> Floats:
    """Mean of each bucket."""
    means: Floats = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    return means


def histogram(values: Floats) -> Histogram:
    """Counts in bins of a width by Freedman and Diaconis (1981), the slowest half per cent in the last one."""
    low, top = float(values.min()), float(np.quantile(values, _LONG_TAIL))
    top = max(top, low * 1.001 + 1e-12)
    quarter, three = np.quantile(values, (0.25, 0.75))
    width = 2 * float(three - quarter) / len(values) ** (1 / 3)
    bins = int(np.clip((top - low) / width if width > 0 else _FEWEST_BINS, _FEWEST_BINS, _MOST_BINS))
    edges = np.linspace(low, top, bins + 1)
    counts = np.histogram(np.minimum(values, top), edges)[0]
    return Histogram(edges, counts, int((values > top).sum()))


def stretches(flags: npt.NDArray[np.bool_], most: int = 400) -> list[tuple[int, int]]:
    """First index and end of each run of True, neighbours joined until there are at most ``most``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    begins, ends = edges[::2], edges[1::2]
    if len(begins) > most:
        gaps = begins[1:] - ends[:-1]
        wide = np.sort(np.argsort(gaps, kind="stable")[len(gaps) - most + 1 :])
        begins, ends = np.append(begins[:1], begins[1:][wide]), np.append(ends[:-1][wide], ends[-1:])
    return [(int(begin), int(end)) for begin, end in zip(begins, ends)]


def packed(values: Floats | Ints) -> str:
    """Little-endian single precision in base64, which takes a third of the digits."""
    return base64.b64encode(np.asarray(values).astype("<f4").tobytes()).decode("ascii")
