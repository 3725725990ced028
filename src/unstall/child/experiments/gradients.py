"""A recorded tensor, given as if computed from a call's inputs: backward reaches them again, with zeros.

It takes as little time as can be, since it counts as the function's: a way to all parameters of a module is made once
and used again in every step (it holds no values that a step could change), and a small answer is tied to it by an
addition of zero.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any

from unstall.child.experiments import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Root = Any
    """A zero whose gradient reaches a module's parameters."""

_paths_by_module: weakref.WeakKeyDictionary[Any, _GradientPaths] = weakref.WeakKeyDictionary()


def through(data: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The values of ``data`` with a way for gradients to the inputs; ``data`` itself where no input takes any."""
    torch = sys.modules["torch"]
    if not torch.is_grad_enabled():
        return data
    roots, tensors = [], []
    for value in taking((*args, *kwargs.values())):
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif (root := _paths_of(value).root(data)) is not None:
            roots.append(root)
    if len(roots) == 1 and not tensors and data.nbytes <= limits.SMALL_BYTES:
        return torch.add(data, roots[0])
    return _zeros().apply(data, *roots, *tensors) if roots or tensors else data


class _GradientPaths:
    """Of one module: a root for each type of answer, as long as the same parameters take gradients."""

    def __init__(self, module: Any):
        self.parameters = list(module.parameters())
        self.flags: list[bool] = []
        self.roots: dict[Any, Root] = {}

    def root(self, data: Any) -> Root | None:
        flags = [parameter.requires_grad for parameter in self.parameters]
        if flags != self.flags:
            self.flags, self.roots = flags, {}
        if not any(flags):
            return None
        key = data.dtype, data.device
        if key not in self.roots:
            zero = sys.modules["torch"].zeros((), dtype=data.dtype, device=data.device)
            reached = [parameter for parameter in self.parameters if parameter.requires_grad]
            self.roots[key] = _zeros().apply(zero, *reached)
        return self.roots[key]


def _paths_of(module: Any) -> _GradientPaths:
    paths = _paths_by_module.get(module)
    if paths is None:
        paths = _paths_by_module[module] = _GradientPaths(module)
    return paths


def taking(values: Iterable[Any], depth: int = 2) -> Iterator[Any]:
    """Among arguments or answers: the tensors that take gradients, and the modules."""
    torch = sys.modules["torch"]
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                yield value
        elif isinstance(value, torch.nn.Module):
            yield value
        elif depth and isinstance(value, (tuple, list)):
            yield from taking(value, depth - 1)
        elif depth and isinstance(value, dict):
            yield from taking(value.values(), depth - 1)


@functools.cache
def _zeros() -> Any:
    """A function for autograd: its first argument as it is, and zeros back to the others."""
    torch = sys.modules["torch"]

    class Recorded(torch.autograd.Function):  # type: ignore[name-defined, misc]
        @staticmethod
        def forward(ctx: Any, data: Any, *inputs: Any) -> Any:
            ctx.zeros = [torch.zeros((), dtype=to.dtype, device=to.device).expand(to.shape) for to in inputs]
            return data.view_as(data)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return (None, *ctx.zeros)

    return Recorded
