"""A batch whose tensors and arrays are indexed once for all of its samples."""

from __future__ import annotations

import sys
from typing import Any

import torch


class _IndexedBatch:
    """A batch of samples. ``values`` holds them all, a row for each; single ones are made when they are asked for."""

    def __init__(self, dataset: Any, indices: list[Any], values: Any) -> None:
        self.dataset, self.indices, self.values = dataset, indices, values
        self.samples: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, place: Any) -> Any:
        if self.samples is None:
            self.samples = [self.dataset[index] for index in self.indices]
        return self.samples[place]

    def collated(self) -> Any:
        """What torch's own collate makes of the samples."""
        return self.collate(self.values, set())

    def collate(self, values: Any, storages: set[int]) -> Any:
        """Rows as a tensor with memory of its own, in the containers that torch's own collate puts them into."""
        if isinstance(values, dict):
            return {key: self.collate(value, storages) for key, value in values.items()}
        if isinstance(values, (tuple, list)):
            return [self.collate(value, storages) for value in values]
        if isinstance(values, str):
            return values
        rows = torch.as_tensor(values)
        storage = rows.untyped_storage().data_ptr()
        if storage in storages or not rows.is_contiguous():
            return torch.utils.data.default_collate(list(rows.unbind()))
        storages.add(storage)
        return rows


def _rows(table: Any, index: Any) -> Any:
    """What a table holds at each index: rows of a tensor or an array at once, anything else one by one."""
    if isinstance(table, torch.Tensor):
        return table[index]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(table, numpy.ndarray) and table.dtype.kind in "biufc":
        return table[numpy.asarray(index)]
    return torch.utils.data.default_collate([table[number] for number in index.tolist()])
