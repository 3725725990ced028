"""Sets of time: sorted, disjoint intervals as NumPy arrays, and the algebra that breakdowns are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstall.trace.timeline import NONE, Flags, Ints

Floats = NDArray[np.float64]


class Intervals(NamedTuple):
    """Disjoint half-open intervals [start, end), nanoseconds, ascending."""

    start: Ints
    end: Ints

    @property
    def total(self) -> int:
        """Nanoseconds covered."""
        return int((self.end - self.start).sum())

    def within(self, windows: Intervals) -> Floats:
        """Nanoseconds covered inside each window; windows may overlap and need no order."""
        if not len(self.start):
            return np.zeros(len(windows.start))
        return self._before(windows.end) - self._before(windows.start)

    def _before(self, t: Ints) -> Floats:
        """Nanoseconds covered before each time."""
        done = np.concatenate(([0], np.cumsum(self.end - self.start)))
        at = np.searchsorted(self.start, t, side="right")
        last = np.maximum(at - 1, 0)
        beyond = np.maximum(self.end[last] - t, 0) * (at > 0)
        return (done[at] - beyond).astype(np.float64)

    def index_at(self, t: Ints) -> Ints:
        """For each time the interval that covers it, or -1."""
        if not len(self.start):
            return np.full(len(t), NONE)
        at = np.searchsorted(self.start, t, side="right") - 1
        return np.where((at >= 0) & (t < self.end[np.maximum(at, 0)]), at, NONE)


EMPTY = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))


def union(start: Ints, end: Ints) -> Intervals:
    """The time covered by any of the intervals, which may overlap and come in any order."""
    not_empty = end > start
    if not not_empty.all():
        start, end = start[not_empty], end[not_empty]
    if not len(start):
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start[first], reach[last])


def join(*sets: Intervals) -> Intervals:
    """The time covered by any of the sets."""
    return union(np.concatenate([s.start for s in sets]), np.concatenate([s.end for s in sets]))


def both(a: Intervals, b: Intervals) -> Intervals:
    """The time covered by both."""
    return _sweep(a, b, lambda in_a, in_b: in_a & in_b)


def without(a: Intervals, b: Intervals) -> Intervals:
    """The time of ``a`` that ``b`` does not cover."""
    return _sweep(a, b, lambda in_a, in_b: in_a & ~in_b)


def gaps(a: Intervals, windows: Intervals) -> Intervals:
    """The time of the windows that ``a`` does not cover."""
    return without(union(windows.start, windows.end), a)


def split(rest: Intervals, reasons: Sequence[Intervals]) -> list[Intervals]:
    """Divide a set among reasons: each takes what it covers of what those before it left; the rest comes last."""
    parts = []
    for reason in reasons:
        parts.append(both(rest, reason))
        rest = without(rest, reason)
    return [*parts, rest]


def _sweep(a: Intervals, b: Intervals, wanted: Callable[[Flags, Flags], Flags]) -> Intervals:
    if not len(a.start):
        return EMPTY
    times = np.concatenate((a.start, a.end, b.start, b.end))
    counts = np.repeat(np.array([1, -1, 1, -1], np.int8), (len(a.start), len(a.end), len(b.start), len(b.end)))
    of_a = np.arange(len(times)) < 2 * len(a.start)
    order = np.argsort(times, kind="stable")
    times, counts, of_a = times[order], counts[order], of_a[order]
    in_a = np.cumsum(counts * of_a, dtype=np.int32) > 0
    in_b = np.cumsum(counts * ~of_a, dtype=np.int32) > 0
    keep = wanted(in_a, in_b)[:-1]
    return union(times[:-1][keep], times[1:][keep])
