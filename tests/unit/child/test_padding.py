"""Padding of token batches: what is trailing or leading filler, and what only looks like it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unstall.child import padding


def batch(lengths, width, pad=0, *, left=False, dtype=torch.int64):
    rows = [[*range(1, length + 1), *[pad] * (width - length)] for length in lengths]
    return torch.tensor([row[::-1] for row in rows] if left else rows, dtype=dtype)


@given(st.lists(st.integers(1, 18), min_size=2, max_size=9), st.booleans(), st.sampled_from([torch.int64, torch.int32]))
def test_it_is_counted_on_either_side(lengths, left, dtype):
    found = padding.facts(batch(lengths, 20, left=left, dtype=dtype))
    if len(set(lengths)) == 1:
        assert found == {}  # columns that never change may be anything
    else:
        assert found["padding"] == pytest.approx(1 - sum(lengths) / (20 * len(lengths)))
        assert found["spare"] == pytest.approx(1 - max(lengths) / 20)


def test_a_batch_that_is_padded_to_its_longest_row_has_none_to_spare():
    assert padding.facts(batch([3, 10, 5, 4], 10))["spare"] == 0


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(torch.arange(40).reshape(4, 10), id="no padding"),
        pytest.param(torch.zeros(4, 10), id="fractions"),
        pytest.param(batch([2, 3, 4], 6), id="fields of a table"),
        pytest.param(batch([2, 3, 4, 5], 10).T, id="not contiguous"),
        pytest.param(torch.zeros(300, 300, dtype=torch.int64), id="very large"),
        pytest.param(torch.zeros(1, 10, dtype=torch.int64), id="one row"),
        pytest.param(batch([2, 3, 4, 5], 10).to("meta"), id="without memory"),
        pytest.param([[1, 0, 0, 0]], id="no tensor"),
        pytest.param(None, id="nothing"),
    ],
)
def test_other_things_have_none(other):
    assert padding.facts(other) == {}


def test_rows_that_end_alike_once_are_not_padded():
    ends = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 9], [3, 4, 5, 6, 7, 8, 1, 9], [5, 6, 7, 8, 1, 2, 9, 9]])
    assert padding.facts(ends) == {}
