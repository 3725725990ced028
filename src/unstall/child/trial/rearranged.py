"""Arguments of a call in another order: the same things, as no run may give them.

What a function does with the order of a sequence, a rewrite of it has to do too. But an order that all calls have in
common (rising times, scores from the best to the worst) may be part of what it is asked: such a sequence stays.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAST = 3  # items of a sequence: fewer have hardly an order


def copy_of(value: Any) -> Any:
    """Of a number, text, array, tensor or container of such, which nothing that is done to the other changes."""
    if is_tensor(value):
        return value.detach().clone()
    if is_array(value):
        return value.copy()
    if type(value) is dict:
        return {key: copy_of(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copy_of(item) for item in value)
    return set(value) if type(value) is set else value


def unordered(calls: Sequence[dict[str, Any]]) -> list[str]:
    """Names of arguments that are sequences in all these calls, and in no order in most of those that have any."""
    return [name for name in calls[0] if all(_is_sequence(call[name]) for call in calls) and _has_none(calls, name)]


def _has_none(calls: Sequence[dict[str, Any]], name: str) -> bool:
    ordered = [_is_ordered(call[name]) for call in calls]
    return ordered.count(True) < ordered.count(False)


def reverse(value: Any) -> Any:
    """A sequence, its last item first."""
    if is_tensor(value):
        return value.detach().flip(0)
    return value[::-1].copy() if is_array(value) else value[::-1]


def _is_sequence(value: Any) -> bool:
    if is_tensor(value) or is_array(value):
        return bool(value.ndim)
    return type(value) in (list, tuple)


def _is_ordered(value: Any) -> bool | None:
    """Whether it rises or falls all along; of rows, whether their first numbers do.

    None where that says nothing: it is short, or all items are the same.
    """
    if len(value) < _LEAST:
        return None
    items = value.reshape(len(value), -1)[:, :1].ravel().tolist() if hasattr(value, "reshape") else list(value)
    try:
        pairs = [*pairwise(items)]
        rises, falls = all(a <= b for a, b in pairs), all(a >= b for a, b in pairs)
    except (TypeError, ValueError, RuntimeError):  # items that cannot be compared, arrays and tensors among them
        return False
    return None if rises and falls else rises or falls


def is_tensor(value: Any) -> bool:
    """Whether it is torch's."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    """Whether it is NumPy's."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)
