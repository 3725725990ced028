"""Recorded answers: what a function returned before, given again. Standard library only; torch if the program has it.

An answer given again must not differ from a fresh one in anything that the program's time depends on. So what the
caller changes in place is copied before it is given, and a tensor that gradients flow through is given with a way for
them to flow on: to the call's own inputs, as zeros.
"""

from __future__ import annotations

import collections
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

RING = 3
"""Answers kept for each call site: the calls that are let through before it is answered from the record."""

_DEPTH = 4
_MAX_SITES = 4096


class CannotReplay(Exception):
    """Calls of this function cannot be answered from a record; the message says why."""


class Sites:
    """The rings of one function, a ring for each place it is called from."""

    def __init__(self, size: int = RING) -> None:
        self.size = size
        self.rings: dict[Any, Ring] = {}

    def ring(self, frame: types.FrameType | None) -> Ring:
        """The ring of the call site that this frame stands at."""
        site = (frame.f_code, frame.f_lasti) if frame is not None else None
        ring = self.rings.get(site)
        if ring is None:
            ring = Ring(self.size) if len(self.rings) < _MAX_SITES else next(iter(self.rings.values()))
            self.rings[site] = ring
        return ring


class Ring:
    """The last answers at one call site, given again in turn."""

    def __init__(self, size: int = RING) -> None:
        self.size = size
        self.answers: list[Answer] = []
        self.turn = 0
        self.seconds = 0.0
        """Mean duration of the calls recorded."""

    @property
    def ready(self) -> bool:
        """Whether there are as many answers as it takes."""
        return len(self.answers) >= self.size

    def record(self, value: Any, seconds: float) -> None:
        """Keep an answer. Raises CannotReplay where it is one that is used up."""
        self.answers.append(Answer(value))
        self.seconds += (seconds - self.seconds) / len(self.answers)

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next recorded answer."""
        self.turn = (self.turn + 1) % len(self.answers)
        return self.answers[self.turn].give(args, kwargs)


class Answer:
    """One recorded return value."""

    def __init__(self, value: Any):
        self.value, plain = _keep(value, _DEPTH)
        self.plain = plain

    def give(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value, safe for the caller to change."""
        return self.value if self.plain else _give(self.value, args, kwargs)


class _Kept:
    """A tensor as it was returned: its values, whether gradients flowed, and its version, to see it changed."""

    def __init__(self, tensor: Any):
        self.grad = bool(tensor.requires_grad)
        self.leaf = bool(tensor.is_leaf)
        self.data = tensor.detach()
        self.version = self.data._version

    def give(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.data._version != self.version:  # the caller works in place: keep ours from now on
            self.data = self.data.clone()
            self.version = self.data._version
            data = self.data.clone()
        else:
            data = self.data
        if self.grad and not self.leaf:
            inputs = [*_inputs(args), *_inputs(kwargs)]
            if inputs and sys.modules["torch"].is_grad_enabled():
                return _through(data, inputs)
            return data
        return data.requires_grad_() if self.grad else data.detach()


def _keep(value: Any, depth: int) -> tuple[Any, bool]:
    """What to store of a value, and whether it can be given as it is."""
    if isinstance(value, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
        raise CannotReplay("it returns a generator, which is used up by whoever reads it")
    if hasattr(value, "__next__"):
        raise CannotReplay(f"it returns an iterator ({type(value).__name__}), which is used up by whoever reads it")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _Kept(value), False
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value, value.ndim == 0
    if depth and type(value) in (tuple, list):
        kept = [_keep(item, depth - 1) for item in value]
        plain = type(value) is tuple and all(is_plain for _, is_plain in kept)
        return (value, True) if plain else (type(value)(item for item, _ in kept), False)
    if depth and isinstance(value, dict):
        made = value.copy()
        for key, item in value.items():
            made[key] = _keep(item, depth - 1)[0]
        return made, False
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_keep(item, depth - 1)[0] for item in value)), False
    if isinstance(value, (set, bytearray, collections.deque)):
        return value.copy(), False
    return value, True


def _give(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(value, _Kept):
        return value.give(args, kwargs)
    if type(value) in (tuple, list):
        return type(value)(_give(item, args, kwargs) for item in value)
    if isinstance(value, dict):
        made = value.copy()
        for key, item in value.items():
            made[key] = _give(item, args, kwargs)
        return made
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_give(item, args, kwargs) for item in value))
    if isinstance(value, (set, bytearray, collections.deque)):
        return value.copy()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.copy()
    return value


def _inputs(value: Any, depth: int = 2) -> Iterator[Any]:
    """The tensors of a call that gradients flow to: its arguments', and the parameters of a module among them."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            yield value
    elif isinstance(value, torch.nn.Module):
        yield from (parameter for parameter in value.parameters() if parameter.requires_grad)
    elif depth and isinstance(value, (tuple, list)):
        for item in value:
            yield from _inputs(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from _inputs(item, depth - 1)


_function: Any = None


def _through(data: Any, inputs: list[Any]) -> Any:
    """The recorded values as if computed from these inputs: backward reaches them, with zeros."""
    global _function
    if _function is None:
        torch = sys.modules["torch"]

        class Recorded(torch.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            def forward(ctx: Any, data: Any, *inputs: Any) -> Any:
                ctx.shapes = [(one.shape, one.dtype, one.device) for one in inputs]
                return data.view_as(data)

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                zeros = (
                    torch.zeros((), dtype=dtype, device=device).expand(shape) for shape, dtype, device in ctx.shapes
                )
                return (None, *zeros)

        _function = Recorded
    return _function.apply(data, *inputs)
