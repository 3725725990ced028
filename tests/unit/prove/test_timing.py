"""What the times of runs say."""

from __future__ import annotations

from unstall.prove.left_behind.effects import Effects
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair, break_even, doubt, medians, ratio_of


def make_run(seconds=10.0, **given):
    return WholeRun(seconds, False, 1e6, Effects(0, ""), **given)


def make_pair(original, changed, shift=None):
    return ProofPair(make_run(original), make_run(changed), shift)


def test_a_slower_start_pays_off_after_some_steps():
    slow = make_run(clock={"began": 0.0, "times": [1.0, 2.0, 3.0]})
    fast = make_run(clock={"began": 0.0, "times": [6.0, 6.5, 7.0]})
    assert break_even([ProofPair(slow, fast)]) == 10
    assert break_even([ProofPair(fast, slow)]) is None


def test_two_pairs_are_too_few_for_a_ratio():
    assert ratio_of([make_pair(10, 5)] * 2) is None
    assert ratio_of([make_pair(10, 5)] * 3).value == 2


def test_a_gain_must_be_there_where_it_is_watched_and_under_other_seeds():
    own, watched = [make_pair(10, 2)] * 2, [make_pair(12, 6)]
    assert doubt([*own, make_pair(10, 3, 1)], watched) is None
    assert "under others" in doubt([*own, make_pair(10, 6, 1)], watched)
    assert "nothing watches" in doubt(own, [make_pair(12, 11)])


def test_medians_are_of_each_side():
    sides = medians([make_pair(10, 2), make_pair(12, 3), make_pair(30, 1)], lambda run: run.seconds)
    assert (sides.original, sides.changed) == (12, 2)
    assert medians([], lambda run: run.seconds) is None
