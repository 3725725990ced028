"""Losses that overflow in the changed program alone."""

from __future__ import annotations

import numpy as np

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.effects import Effects
from unstall.prove.runner import WholeRun
from unstall.prove.stress import PLAN, WHERE, first_difference


def run(loss, what="loss.0"):
    values = np.array([loss], np.float32).tobytes()
    return WholeRun(1.0, False, 0.0, Effects(0, ""), tensors=[ObservedTensor(what, 0, "float32", (1,), b"", values)])


def test_a_loss_that_overflows_in_the_changed_program_alone_is_different():
    difference = first_difference(run(3.0), run(np.inf))
    assert (difference.kind, difference.place) == ("values", "step 1, loss")
    assert first_difference(run(3.0), run(np.nan)) is not None


def test_what_overflows_in_both_or_is_another_number_is_not_compared():
    assert first_difference(run(np.inf), run(np.inf)) is None
    assert first_difference(run(3.0), run(4.0)) is None
    assert first_difference(run(3.0, "output.0"), run(np.inf, "output.0")) is None


def test_the_words_and_the_plan_have_one_factor():
    assert f"{PLAN['stress']['factor']:,.0f} times" in WHERE
