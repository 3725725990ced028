"""When a kept sample has paid for itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.optimize.payback import epochs_to_pay, told


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
