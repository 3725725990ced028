"""Torch's dataset of tensors, which indexes a whole batch at once."""

from __future__ import annotations

from typing import Any

import torch

from unstall.optimize.runtime.indexed_batch import _IndexedBatch, _rows


class _TensorDataset(torch.utils.data.TensorDataset):
    """The rows of some tensors; those of a batch are read at once."""

    def __getitems__(self, indices: list[Any]) -> Any:
        index = torch.as_tensor(indices)
        return _IndexedBatch(self, indices, tuple(_rows(tensor, index) for tensor in self.tensors))
