"""Memory that grows to the end of a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.growth import growing, growth_of, rise_of
from unstall.prove.left_behind.effects import Effects
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair

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


def test_processes_that_each_epoch_leaves_behind_rise_through_all_quarters():
    assert rise_of([2 * (step // 10) for step in range(40)]) == 6
    assert rise_of([min(step, 20) for step in range(80)]) is None  # all started in the first quarter
    assert rise_of([4] * 80) is None and rise_of([1, 2, 3]) is None


def test_two_quarters_may_be_equal_where_the_epochs_are_few():
    assert rise_of([8] * 8 + [16] * 24 + [24] * 8) == 16
    assert rise_of([8] * 20 + [16] * 20) is None  # begun once, in the middle
    assert rise_of([8] * 30 + [16] * 5 + [24] * 5) is None


def pair(before, after):
    runs = [WholeRun(1.0, False, 0.0, Effects(0, ""), account=account) for account in (before, after)]
    return ProofPair(*runs)


def test_what_grows_in_all_runs_of_the_changed_program_alone_is_said():
    steady, piling = [0] * 40, [step // 10 for step in range(40)]
    changed = pair({"processes": steady}, {"processes": piling})
    assert growing([changed, changed]) == (
        "it starts more and more processes, 3 more at the end, which the original does not: longer runs may not end"
    )
    assert "files open" in growing([pair({"descriptors": steady}, {"descriptors": piling})])
    assert "more and more threads, 3 more at" in growing([pair({"threads": steady}, {"threads": piling})])
    memory = [(100 + step) * MB for step in range(80)]
    assert "its helper processes' memory grows" in growing([pair({"helpers": [MB] * 80}, {"helpers": memory})])
    assert "graphs of more and more losses, 3 more at" in growing([pair({"graphs": steady}, {"graphs": piling})])
    assert "without a name, 3 bytes more at" in growing([pair({"unnamed": steady}, {"unnamed": piling})])
    assert growing([changed, pair({"processes": steady}, {"processes": steady})]) is None
    assert growing([pair({"processes": piling}, {"processes": piling})]) is None
    assert growing([]) is None


def test_what_comes_at_once_in_each_epoch_and_is_never_given_back():
    teeth = [0.0, 8e6, 8e6, 0.0, 0.0, 4e6, 0.0, 0.0]
    epochs = [3e8 + 25e6 * epoch + tooth for epoch in range(4) for tooth in teeth]
    assert growth_of(epochs) == pytest.approx(50e6)
    assert growth_of([3e8 + tooth for _ in range(4) for tooth in teeth]) is None
    assert growth_of([3e8 + 60e6 * min(epoch, 1) + tooth for epoch in range(4) for tooth in teeth]) is None, "a cache"


def test_batches_that_each_epoch_leaves_alive():
    def growth(changed, original=((10, 1), (20, 1), (30, 1))):
        return growing([pair({"batches_alive": [*original]}, {"batches_alive": [*changed]})])

    piling = ((10, 10), (20, 20), (30, 30))
    assert growth(piling) == (
        "it keeps more batches with each epoch, which the original does not: longer runs may not end"
    )
    assert growth(piling[:2])
    assert growth(piling[:1]) is None, "one epoch tells nothing"
    assert growth(((10, 10), (20, 10), (30, 10))) is None, "a cache is full after the first epoch"
    assert growth(((10, 5), (20, 10), (30, 10))) is None, "of two epochs at a time"
    assert growth(((10, 1), (20, 2), (30, 3))) is None, "one of each"
    assert growth(piling, piling) is None, "the original keeps them too"
    assert growth(()) is None, "no loader gave all of its data"
