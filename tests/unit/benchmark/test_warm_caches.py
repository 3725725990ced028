"""How much faster work runs once other work has gone from between."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.benchmark import thresholds
from unstall.benchmark.warm_caches import share_left

CHEAP_S, DEAR_S = 20e-9, 300e-9
seconds = st.floats(1e-5, 100.0)


@pytest.mark.parametrize("left_s", [0.0, -1.0, 0.01, 0.02])
def test_where_nothing_has_gone_or_nothing_is_left_nothing_changes(left_s):
    assert share_left(0.01, left_s, DEAR_S) == 1.0


@pytest.mark.parametrize("refetch_s", [None, CHEAP_S])
def test_where_memory_is_cheap_a_tenth_of_the_work_runs_as_much_faster_as_any_does(refetch_s):
    assert share_left(0.01, 0.001, refetch_s) == pytest.approx(10**-thresholds.WARMS)


def test_where_memory_is_dear_what_is_left_saves_what_it_need_not_fetch():
    saved_s = DEAR_S - thresholds.LEAST_REFETCH_S - thresholds.REFETCH_GROWS * 0.001
    expected = 10**-thresholds.WARMS * math.exp(-thresholds.LINES_PER_S * saved_s * 0.9)
    assert share_left(0.01, 0.001, DEAR_S) == pytest.approx(expected)


def test_work_that_pushes_its_own_out_of_the_caches_saves_nothing_there():
    assert share_left(0.4, 0.04, DEAR_S) == share_left(0.4, 0.04, None)


def test_no_more_than_caches_hold_is_saved():
    assert share_left(10.0, 1.0, DEAR_S) == pytest.approx(1 - thresholds.MOST_WARMED_S)


@given(was_s=seconds, part=st.floats(0.001, 0.999), refetch_s=st.floats(1e-9, 2e-6))
def test_it_is_a_share_and_the_dearer_memory_is_the_smaller(was_s, part, refetch_s):
    share = share_left(was_s, was_s * part, refetch_s)
    assert 0 < share_left(was_s, was_s * part, refetch_s * 1.1) <= share <= share_left(was_s, was_s * part, None) <= 1
