"""From memory to the device: what pinning and copying a batch take, where there is a device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from unstall.child.data.clock import Cost, timed


def cuda() -> Any:
    """The torch.cuda module where there is a device, else None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None


def pin(batch: Any, *, times: int, items: int) -> Cost:
    """Moving a batch into pinned memory."""
    from torch.utils.data._utils.pin_memory import pin_memory

    cost = Cost()
    for _ in range(times):
        timed(cost, items, pin_memory, batch)
    return cost


def transfer(batch: Any, *, times: int, items: int) -> Cost:
    """Copying a batch to the device, until it is there."""
    import torch

    def copy() -> None:
        copied = tree_map(batch, lambda tensor: tensor.to("cuda", non_blocking=True))
        torch.cuda.synchronize()
        del copied

    copy()  # the first makes the device ready
    cost = Cost()
    for _ in range(times):
        timed(cost, items, copy)
    return cost


def tree_map(value: Any, function: Callable[[Any], Any]) -> Any:
    """The same nesting of lists, tuples and dicts with every tensor replaced."""
    if isinstance(value, dict):
        return {key: tree_map(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [tree_map(item, function) for item in value]
    return function(value) if hasattr(value, "is_pinned") else value
