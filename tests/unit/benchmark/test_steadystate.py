"""Which steps are measured: the steady-state rule and its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.benchmark.steadystate import measured, overlap, undisturbed, warmup_steps
from unstall.benchmark.thresholds import FEWEST_UNDISTURBED

durations = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200).map(np.array)


def timeline(steps):
    """Starts and ends of steps of these durations."""
    edges = np.concatenate([[0.0], np.cumsum(steps)]) + 100.0
    return edges[:-1], edges[1:]


@given(durations, st.integers(0, 1000))
def test_warmup_leaves_most_of_a_run(steps, prefetched):
    warmup = warmup_steps(steps, prefetched)
    assert 0 <= warmup <= max(1, len(steps) // 5)
    assert warmup < len(steps)


@given(durations, st.integers(0, 100))
def test_prefetched_batches_only_ever_add_to_warmup(steps, prefetched):
    assert warmup_steps(steps, prefetched) >= warmup_steps(steps)


@given(durations, st.integers(-20, 20))
def test_warmup_does_not_depend_on_the_unit(steps, exponent):
    assert warmup_steps(steps * 2.0**exponent) == warmup_steps(steps)


@pytest.mark.parametrize("slow, expected", [(1, 1), (3, 3), (7, 7)])
def test_slow_first_steps_are_warmup(slow, expected):
    steps = np.array([1.0] * slow + [0.1] * 100)
    # The median of three tells after two of them are fast.
    assert expected - 1 <= warmup_steps(steps) <= expected


def test_a_steady_run_loses_its_first_step_only():
    assert warmup_steps(np.full(100, 0.1)) == 1


def test_a_run_that_never_settles_loses_a_fifth():
    assert warmup_steps(np.linspace(10.0, 1.0, 100)) == 20


@pytest.mark.parametrize("count, warmup", [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_very_short_runs(count, warmup):
    assert warmup_steps(np.ones(count)) == warmup


def test_steps_that_touch_a_window_are_disturbed():
    starts, ends = timeline([1.0] * 6)
    clean = undisturbed(starts, ends, [(102.0, 103.0), (104.5, 104.6)])
    assert clean.tolist() == [True, True, False, True, False, True]
    assert undisturbed(starts, ends, []).all()


@given(durations, st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)).map(sorted).map(tuple), max_size=5))
def test_what_is_measured_is_warm_and_not_empty(steps, windows):
    starts, ends = timeline(steps)
    chosen, warmup, disturbed = measured(starts, ends, windows)
    assert len(chosen) == len(steps)
    assert chosen.any()
    assert not chosen[:warmup].any()
    if not disturbed:
        assert not (chosen & ~undisturbed(starts, ends, windows)).any()
        assert chosen.sum() >= min(FEWEST_UNDISTURBED, len(steps) - warmup)


@given(durations, st.integers(1, 50))
def test_no_more_steps_than_wanted_are_measured_and_those_the_last(steps, wanted):
    starts, ends = timeline(steps)
    everything, _, _ = measured(starts, ends, [])
    chosen, _, _ = measured(starts, ends, [], wanted=wanted)
    assert np.flatnonzero(chosen).tolist() == np.flatnonzero(everything)[-wanted:].tolist()


def test_disturbed_steps_count_only_where_too_few_others_are():
    starts, ends = timeline([1.0] * 20)
    _, _, disturbed = measured(starts, ends, [(105.0, 110.0)])
    assert not disturbed
    chosen, warmup, disturbed = measured(starts, ends, [(100.0, 118.0)])
    assert disturbed
    assert chosen.sum() == 20 - warmup


def sampled_every_other_second(until):
    """Windows as the sampler opens them."""
    return [(100.5 + second, 101.5 + second) for second in range(0, int(until) + 2, 2)]


@pytest.mark.parametrize("every, long_s", [(50, 0.9), (100, 2.5), (300, 3.0)])
def test_long_steps_count_though_they_never_fit_between_two_windows(every, long_s):
    steps = np.where(np.arange(1500) % every == every - 1, long_s, 0.01)
    starts, ends = timeline(steps)
    chosen, warmup, disturbed = measured(starts, ends, [], sampled_every_other_second(steps.sum()))
    assert disturbed
    assert steps[chosen].mean() == pytest.approx(steps[warmup:].mean(), rel=0.01)


def test_steps_that_are_alike_are_left_out_where_stacks_are_sampled():
    starts, ends = timeline(np.full(1500, 0.01))
    windows = sampled_every_other_second(15)
    chosen, warmup, disturbed = measured(starts, ends, [], windows)
    assert not disturbed
    assert chosen.tolist() == ((np.arange(1500) >= warmup) & undisturbed(starts, ends, windows)).tolist()


def test_what_slows_all_sampled_steps_alike_does_not_make_them_count():
    even = np.full(1500, 0.01)
    starts, ends = timeline(even)
    windows = sampled_every_other_second(20)
    slower = np.where(undisturbed(starts, ends, windows), even, 1.15 * even)
    starts, ends = timeline(slower)
    assert not measured(starts, ends, [], windows)[2]


def test_a_step_that_unstall_itself_made_long_never_counts():
    steps = np.where(np.arange(1500) % 50 == 49, 0.9, 0.01)
    steps[700] = 5.0
    starts, ends = timeline(steps)
    held_up = [(starts[700] + 0.01, ends[700])]
    chosen, _, disturbed = measured(starts, ends, held_up, sampled_every_other_second(steps.sum()))
    assert disturbed
    assert not chosen[700]
    assert chosen[749]


@given(durations, st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)).map(sorted).map(tuple), max_size=5))
def test_no_more_of_a_step_is_within_windows_than_it_lasts(steps, windows):
    starts, ends = timeline(steps)
    seconds = overlap(starts, ends, windows)
    assert (seconds >= 0).all()
    assert (seconds <= (ends - starts) * (1 + 1e-9) + 1e-9).all()
