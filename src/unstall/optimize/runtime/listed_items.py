"""Numbers of a tensor or array that a loop asks for one by one, read at once."""

from __future__ import annotations

from typing import Any


class _Items:
    """Items of ``values`` as numbers, after so many indices, where they are asked for: no tensor of that many axes."""

    def __init__(self, values: Any, depth: int):
        self.values, self.depth = values, depth

    def __getitem__(self, index: Any) -> Any:
        return self._number(self.values[index])

    def __iter__(self) -> Any:
        return map(self._number, self.values)

    def __len__(self) -> int:
        return len(self.values)

    def _number(self, item: Any) -> Any:
        return item.item() if self.depth == 1 else _Items(item, self.depth - 1)


def _listed_items(values: Any, depth: int) -> Any:
    """``values.tolist()``, where that has numbers after ``depth`` indices, as ``values[i, ...].item()`` gives them."""
    return values.tolist() if getattr(values, "ndim", 0) == depth else _Items(values, depth)
