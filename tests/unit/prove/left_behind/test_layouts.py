"""How tensors lie in their storages, over all permutations of their dimensions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.left_behind.layouts import of_tensor


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms())
def test_numbers_are_read_in_the_order_of_rows_however_they_lie(size, draw):
    order = draw.sample(range(len(size)), len(size))
    lying = torch.arange(torch.Size(size).numel(), dtype=torch.float64).reshape([size[dim] for dim in order])
    tensor = lying.permute([order.index(dim) for dim in range(len(size))])
    layout = of_tensor(tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.numel())
    assert layout is not None
    stored = bytes(tensor.untyped_storage())
    assert layout.in_rows(stored, 8) == tensor.contiguous().numpy().tobytes()


@pytest.mark.parametrize(
    ("offset", "size", "stride", "numbers"),
    [
        (1, (2, 2), (2, 1), 4),
        (0, (2, 2), (2, 1), 5),
        (0, (2, 2), (0, 1), 4),
        (0, (2, 2), (1, 1), 4),
        (0, (2.0,), (1,), 2),
    ],
)
def test_what_is_no_whole_storage_has_no_layout(offset, size, stride, numbers):
    assert of_tensor(offset, size, stride, numbers) is None
