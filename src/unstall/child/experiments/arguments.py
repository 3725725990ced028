"""Whether a call changed its arguments: then its answer is not all it does. Standard library only."""

from __future__ import annotations

import sys
from typing import Any

from unstall.child.experiments import limits

State = list[tuple[Any, Any]]


def state(args: tuple[Any, ...], kwargs: dict[str, Any]) -> State:
    """What can be seen, cheaply, of each argument before the call; the object a method belongs to is its own affair."""
    return [(key, _visible_state(value)) for key, value in _named(args, kwargs)]


def changed(before: State, args: tuple[Any, ...], kwargs: dict[str, Any], function: Any) -> str | None:
    """The name (or place) of the first argument that looks different after the call."""
    for (key, old), (_, value) in zip(before, _named(args, kwargs)):
        if old is not None and old != _visible_state(value):
            return _name(key, function)
    return None


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [*enumerate(args), *kwargs.items()]


def _name(key: Any, function: Any) -> str:
    names = function.__code__.co_varnames
    return names[key] if isinstance(key, int) and key < function.__code__.co_argcount else str(key)


def _visible_state(value: Any) -> Any:
    if isinstance(value, (list, set, dict, bytearray)):
        if len(value) > limits.SAMPLED_ELEMENTS:
            return len(value)
        return [id(item) for item in (value.values() if isinstance(value, dict) else value)]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value._version if not value.is_inference() else None
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.size and value.dtype.kind in "biufc":
        step = max(1, value.size // limits.SAMPLED_ELEMENTS)
        return value.flat[::step].tobytes()
    return None
