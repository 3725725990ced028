"""From memory to the device: what pinning and copying a batch take, where there is a device."""

from __future__ import annotations

from typing import Any

from unstall.child.data.clock import Cost, timed


def available() -> bool:
    """Whether there is a CUDA device."""
    import torch

    return bool(torch.cuda.is_available())


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
    from torch.utils._pytree import tree_map

    def copy() -> None:
        copied = tree_map(_to_device, batch)
        torch.cuda.synchronize()
        del copied

    copy()  # the first makes the device ready
    cost = Cost()
    for _ in range(times):
        timed(cost, items, copy)
    return cost


def _to_device(value: Any) -> Any:
    return value.to("cuda", non_blocking=True) if hasattr(value, "is_pinned") else value
