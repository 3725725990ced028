"""Losses that tell less than the original's that a training goes astray."""

from __future__ import annotations

import numpy as np
import pytest

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.conditions.stress import STRESSES, first_difference
from unstall.prove.left_behind.effects import Effects
from unstall.prove.runner import WholeRun

LARGE, NO_NUMBER, SMALL, PART = STRESSES


def run(loss, what="loss.0"):
    values = np.array([loss], np.float32).tobytes()
    return WholeRun(1.0, False, 0.0, Effects(0, ""), tensors=[ObservedTensor(what, 0, "float32", (1,), b"", values)])


def test_a_loss_that_overflows_in_the_changed_program_alone_is_different():
    difference = first_difference(run(3.0), run(np.inf), LARGE)
    assert (difference.kind, difference.place) == ("values", "step 1, loss")
    assert first_difference(run(3.0), run(np.nan), LARGE) is not None


def test_a_loss_that_stays_small_is_different():
    assert first_difference(run(900.0), run(27.6), LARGE).detail == "it is 27.6, and the original's 900"


@pytest.mark.parametrize(("before", "after"), [(np.inf, np.inf), (np.inf, 900.0), (900.0, 899.0), (900.0, 950.0)])
def test_what_overflows_in_the_original_or_is_as_large_is_not_compared(before, after):
    assert first_difference(run(before), run(after), LARGE) is None


def test_a_loss_that_is_a_number_where_the_originals_is_none_is_different():
    assert first_difference(run(np.nan), run(0.5), NO_NUMBER) is not None
    assert first_difference(run(np.nan), run(np.nan), NO_NUMBER) is None
    assert first_difference(run(0.5), run(0.5), NO_NUMBER) is None


def test_outputs_are_no_losses():
    assert first_difference(run(3.0, "output.0"), run(np.inf, "output.0"), LARGE) is None


@pytest.mark.parametrize(("after", "is_different"), [(0.5, True), (np.nan, False)])
def test_weights_that_stay_numbers_where_the_originals_do_not_are_different(after, is_different):
    def weighing(weight, step=1):
        values = np.array([weight], np.float32).tobytes()
        weights = ObservedTensor("weights.0.head.0", step, "float32", (1,), b"", values)
        return WholeRun(1.0, False, 0.0, Effects(0, ""), tensors=[weights])

    difference = first_difference(weighing(np.nan), weighing(after), NO_NUMBER)
    assert (difference is not None) == is_different
    assert not is_different or difference.place == "after step 1, head"
    assert first_difference(weighing(np.nan, 0), weighing(after, 0), NO_NUMBER) is None
    assert first_difference(weighing(np.nan), weighing(after), LARGE) is None


@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        (1e-4, 0.1, "its norm is 0.1, and that of the original's 0.0001"),
        (1e-4, 1.1e-4, None),
        (0.0, 1e-7, None),
        (0.1, 1e-4, None),
    ],
)
def test_gradients_of_small_outputs_are_small(before, after, detail):
    difference = first_difference(run(before, "gradients.0.0"), run(after, "gradients.0.0"), SMALL)
    assert (difference and difference.detail) == detail
    assert first_difference(run(before), run(after), SMALL) is None, "losses"
    assert first_difference(run(before, "gradients.0.0"), run(after, "gradients.0.0"), LARGE) is None


@pytest.mark.parametrize(("after", "is_different"), [(0.1, False), (0.101, False), (0.4, True), (np.nan, False)])
def test_gradients_of_a_part_of_a_loss_are_that_part(after, is_different):
    difference = first_difference(run(0.1, "gradients.0.0"), run(after, "gradients.0.0"), PART)
    assert (difference is not None) == is_different
    assert first_difference(run(0.1), run(0.4), PART) is None, "losses"
