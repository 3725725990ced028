"""The algebra of sets of time, against counting nanoseconds one by one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unstall.trace import intervals
from unstall.trace.intervals import Intervals

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted), max_size=12)


def _set(spans) -> Intervals:
    array = np.array(spans, np.int64).reshape(-1, 2)
    return intervals.union(array[:, 0], array[:, 1])


def _points(spans) -> set[int]:
    return {point for start, end in spans for point in range(start, end)}


def _counted(found: Intervals) -> set[int]:
    pairs = list(zip(found.start.tolist(), found.end.tolist()))
    assert all(a[1] < b[0] for a, b in pairwise(pairs)), "disjoint and ascending"
    return _points(pairs)


@given(SPANS, SPANS)
def test_set_operations(a, b):
    in_a, in_b = _points(a), _points(b)
    assert _counted(_set(a)) == in_a
    assert _counted(intervals.join(_set(a), _set(b))) == in_a | in_b
    assert _counted(intervals.both(_set(a), _set(b))) == in_a & in_b
    assert _counted(intervals.without(_set(a), _set(b))) == in_a - in_b


@given(SPANS, SPANS)
def test_time_inside_windows(a, windows):
    array = np.array(windows, np.int64).reshape(-1, 2)
    found = _set(a).within(Intervals(array[:, 0], array[:, 1]))
    assert found.tolist() == [len(_points(a) & _points([window])) for window in windows]


@given(SPANS, SPANS, SPANS)
def test_reasons_divide_a_set(whole, first, second):
    parts = intervals.split(_set(whole), [_set(first), _set(second)])
    counted = [_counted(part) for part in parts]
    assert counted[0] == _points(whole) & _points(first)
    assert counted[1] == (_points(whole) & _points(second)) - _points(first)
    assert sum(map(len, counted)) == len(_points(whole))


@given(SPANS)
def test_the_times_that_an_interval_covers(a):
    times = np.arange(-2, 63)
    assert set(times[_set(a).index_at(times) >= 0].tolist()) == _points(a)
