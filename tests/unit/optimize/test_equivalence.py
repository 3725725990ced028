"""When two runs count as the same."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from unstall.optimize.equivalence import ObservedTensor, difference_of, own_difference


def tensor(values, what="loss.0", step=0, dtype="float32"):
    array = np.asarray(values, dtype="float32" if dtype == "bfloat16" else dtype)
    return ObservedTensor(what, step, dtype, array.shape, hashlib.blake2b(array.tobytes()).digest(), array.tobytes())


def test_the_same_bits_are_exact():
    run = [tensor([1.0, 2.0]), tensor([0.5], step=1)]
    assert difference_of(run, list(run), "exact") is None


def test_one_bit_less_is_close_and_not_exact():
    a, b = [tensor([1.0])], [tensor([np.nextafter(np.float32(1), np.float32(2))])]
    assert "must not" in difference_of(a, b, "exact")
    assert difference_of(a, b, "close") is None


def test_the_first_step_that_differs_is_named():
    a = [tensor([1.0]), tensor([1.0], step=3), tensor([1.0], step=4)]
    b = [tensor([1.0]), tensor([1.5], step=3), tensor([9.0], step=4)]
    why_not = difference_of(a, b, "close")
    assert "step 4, loss" in why_not and "1.5 instead of 1" in why_not


@pytest.mark.parametrize(("dtype", "allowed"), [("float64", 1e-8), ("float32", 5e-4), ("bfloat16", 2e-2)])
def test_the_tolerance_is_that_of_the_coarser_type(dtype, allowed):
    a = [tensor(np.ones(8), dtype="float64")]
    assert difference_of(a, [tensor(np.full(8, 1 + allowed), dtype=dtype)], "close") is None
    assert difference_of(a, [tensor(np.full(8, 1 + 20 * allowed), dtype=dtype)], "close") is not None


def test_whole_numbers_must_be_equal():
    assert difference_of([tensor([3], dtype="int64")], [tensor([4], dtype="int64")], "close") is not None


@pytest.mark.parametrize(
    "changed", [[], [tensor([1.0]), tensor([1.0])], [tensor([1.0, 1.0])], [tensor([1.0], "output.0")]]
)
def test_other_tensors_are_not_equivalent(changed):
    assert difference_of([tensor([1.0])], changed, "close") is not None


def test_a_number_that_became_nan_is_never_close():
    assert difference_of([tensor([1.0, 2.0])], [tensor([1.0, np.nan])], "close") is not None


def test_a_program_that_differs_from_itself_widens_the_tolerance():
    first, second = [tensor([1.0])], [tensor([1.002])]
    own = own_difference(first, second)
    assert own == pytest.approx(0.002, rel=1e-3)
    assert difference_of(first, [tensor([1.004])], "exact", own=own) is None
    assert difference_of(first, [tensor([1.1])], "exact", own=own) is not None
