"""Whether two values are the same to the bit."""

from __future__ import annotations

from typing import Any

import numpy
import torch


def _bits(value: Any) -> Any:
    """A tensor as whole numbers, since 0.0 and -0.0 are the same; NumPy compares these faster than torch."""
    bits = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return bits.view(numpy.int64) if value.nbytes % 8 == 0 else bits


def _have_same_bits(old: Any, new: Any) -> bool:
    if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
        return type(old) is type(new) and bool(old == new)
    alike = old.dtype == new.dtype and old.shape == new.shape
    return alike and numpy.array_equal(_bits(old), _bits(new))
