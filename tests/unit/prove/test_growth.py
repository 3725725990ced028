"""Memory that grows to the end of a run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.growth import growth_of

MB = 1e6


def test_what_grows_to_the_end_is_measured_over_the_last_half():
    growth = growth_of([100 * MB + step * MB for step in range(80)])
    assert growth == 30 * MB  # of four quarters of ten steps, the middle of the last over that of the first


def test_a_cache_that_is_full_after_the_first_epoch_is_no_growth():
    assert growth_of([100 * MB + min(step, 20) * MB for step in range(80)]) is None


def test_noise_and_growth_of_no_account_are_none():
    assert growth_of([100 * MB + step % 3 * MB for step in range(80)]) is None
    assert growth_of([100 * MB + step * 1e3 for step in range(80)]) is None


def test_a_run_of_a_few_steps_tells_nothing():
    assert growth_of([]) is None and growth_of([100 * MB + step * MB for step in range(30)]) is None


@given(st.lists(st.floats(1e6, 1e9), max_size=200))
def test_memory_that_only_falls_does_not_grow(memory):
    assert growth_of(sorted(memory, reverse=True)) is None


@given(st.lists(st.floats(1e6, 1e9), max_size=200))
def test_growth_is_never_more_than_all_that_there_is(memory):
    growth = growth_of(memory)
    assert growth is None or 0 < growth <= max(memory) - min(memory)
