"""Slices of a table, one for each sample of a batch."""

from __future__ import annotations

from typing import Any

import torch

from unstall.optimize.runtime.indexed_batch import _rows


def _windows(table: Any, begins: Any, ends: Any) -> Any:
    """``table[begin:end]`` of a tensor or an array for each sample; all must have the same length."""
    begins = torch.as_tensor(begins)
    lengths = torch.as_tensor(ends).clamp(max=len(table)) - begins
    length = int(lengths.max())
    if bool((begins < 0).any()) or bool((lengths != length).any()):
        raise RuntimeError("each sample of a batch should be of equal size")
    return _rows(table, begins[:, None] + torch.arange(length))
