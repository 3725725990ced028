"""The tensors in what a program hands around, and how many rows they have."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def tensors(value: Any) -> list[Any]:
    """The tensors in nested containers, in a fixed order."""
    if hasattr(value, "detach") and hasattr(value, "dtype"):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    if hasattr(value, "__dataclass_fields__"):
        return [tensor for name in value.__dataclass_fields__ for tensor in tensors(getattr(value, name))]
    return []


def rows(args: tuple[Any, ...]) -> int:
    """Length of the first dimension of the first tensor or array among the arguments, or inside them; 1 without any."""
    arrays = (array for value in args for array in ([value] if hasattr(value, "shape") else tensors(value)))
    first = next(arrays, None)
    return int(first.shape[0]) if first is not None and len(first.shape) > 1 else 1


def is_traced(values: Sequence[Any]) -> bool:
    """Whether a compiler is at work: among the tensors are its stand-ins, which have shapes and no numbers."""
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", ())
    functional = getattr(sys.modules.get("torch._subclasses.functional_tensor"), "FunctionalTensor", ())
    return any(isinstance(value, (fake, functional)) for value in values)


def is_dense_float(value: Any) -> bool:
    """Whether it is a tensor of floating-point numbers that lies in memory as a whole."""
    torch: Any = sys.modules["torch"]
    return (
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and value.layout is torch.strided
        and value.device.type != "meta"
    )
