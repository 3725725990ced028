"""When a kept sample has paid for itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.optimize.payback import StartCost, epochs_to_pay, told


@pytest.mark.parametrize(
    ("first", "later", "epochs"), [(1.0, 2.0, 1), (1.3, 2.0, 1), (0.5, 2.0, 3), (0.72, 3.34, 2), (0.37, 1.36, 8)]
)
def test_the_epoch_by_whose_end_the_first_is_won_back(first, later, epochs):
    assert epochs_to_pay(first, later) == epochs


@pytest.mark.parametrize("later", [1.0, 0.9])
def test_what_is_no_faster_later_never_pays(later):
    assert epochs_to_pay(0.5, later) is None
    assert told(0.5, later) == "the first one takes 2.00× as long, and is never won back"


@given(st.floats(0.05, 5.0), st.floats(1.01, 100.0))
def test_the_training_is_as_fast_by_then_and_not_before(first, later):
    epochs = epochs_to_pay(first, later)
    takes = [1 / first + count / later for count in range(epochs)]
    assert takes[-1] <= epochs + 1e-9
    assert all(took > count - 1e-9 for count, took in enumerate(takes[:-1], 1))


def test_in_words():
    assert told(1.0, 2.0) == "the first one is no slower"
    assert told(0.5, 2.0) == "the first one takes 2.00× as long, won back by epoch 3"


def test_what_compiles_says_when_each_run_has_won_it_back():
    cost = StartCost(first_s=41.2, later_s=6.0, before_s=0.05, after_s=0.02)
    assert cost.steps_to_pay == pytest.approx(200)
    assert cost.told() == (
        "each run compiles for 6 s, the first for 41 s: won back after 200 steps, 10 s of the original's"
    )


@pytest.mark.parametrize("after_s", [0.05, 0.06])
def test_what_is_no_faster_never_wins_a_start_back(after_s):
    assert StartCost(9.0, 5.0, 0.05, after_s).told().endswith("the first for 9 s, which is never won back")


def test_a_start_that_takes_no_longer_is_won_back_at_once():
    assert StartCost(first_s=-0.1, later_s=-0.2, before_s=0.05, after_s=0.02).steps_to_pay == 0
