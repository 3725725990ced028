"""How long backward spends inside a function: from the gradients of its answers to those of its inputs and parameters.

Hooks look on; no gradient changes. Standard library only; torch if the program has it.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import weakref
from time import monotonic
from typing import TYPE_CHECKING, Any

from unstall.simplify import gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_ANSWERS = 64
_ZEROS = 7
_MOST_BYTES = 256 << 20


class Backpropagation:
    """Of the calls of one function; overlapping ones count once."""

    def __init__(self, add: Callable[[float, float], None]):
        """``add``: called with the time at which backward left the function, and the seconds that it was inside."""
        self._add = add
        self._inside: set[object] = set()
        """Calls that backward has entered and not left."""
        self._entered = self._last = 0.0
        self._modules: weakref.WeakSet[Any] = weakref.WeakSet()
        self._parameters: list[Any] = []
        self._handles: list[Any] = []
        self._reached = 0

    def follow(self, answer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A call has ended. Its backward comes later, if ever, and ends where the next call does at the latest.

        Whether gradients will flow through the answer.
        """
        self.finish()
        if isinstance(answer, (list, tuple, dict)) and len(answer) > _MOST_ANSWERS:
            return False  # rows of data: to look at each would take longer than the call
        answers = [one for one in gradients.taking((answer,)) if getattr(one, "grad_fn", None) is not None]
        if not answers:
            return False
        with contextlib.suppress(RuntimeError):  # of tensors that take no hooks, as those of functional transforms
            self._look_on(object(), answers, gradients.taking((*args, *kwargs.values())))
        return True

    def _look_on(self, call: object, answers: Iterable[Any], inputs: Iterable[Any]) -> None:
        for one in answers:
            one.register_hook(functools.partial(self._enter, call))
        for one in inputs:
            if hasattr(one, "parameters"):
                self._watch(one)
            elif one.grad_fn is not None:
                one.register_hook(functools.partial(self._leave, call))

    def finish(self) -> None:
        """Calls that no gradient of an input ended, ended with the last of a parameter."""
        if self._inside:
            self._inside.clear()
            self._add(self._last, self._last - self._entered)

    def close(self) -> float:
        """Look on no longer. Seconds that it would have taken to fill all these gradients with zeros."""
        self.finish()
        for handle in self._handles:
            handle.remove()
        runs = self._reached / len(self._parameters) if self._parameters else 0.0
        zeros_s = runs * _zeros_s(self._parameters) if runs else 0.0
        self._handles.clear()
        self._parameters.clear()
        self._modules.clear()
        return zeros_s

    def _enter(self, call: object, _gradient: Any) -> None:
        now = monotonic()
        if not self._inside:
            self._entered = now
        self._inside.add(call)
        self._last = now

    def _leave(self, call: object, _gradient: Any) -> None:
        if call in self._inside:
            self._last = monotonic()
            if len(self._inside) == 1:
                self.finish()
            self._inside.discard(call)

    def _watch(self, module: Any) -> None:
        if module in self._modules:
            return
        self._modules.add(module)
        for parameter in module.parameters():
            if parameter.requires_grad:
                self._parameters.append(parameter)
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._accumulated))

    def _accumulated(self, _parameter: Any) -> None:
        self._reached += 1
        if self._inside:
            self._last = monotonic()


def _zeros_s(parameters: list[Any]) -> float:
    """Seconds to fill a gradient for each with zeros, as where one flows that is a single zero, expanded."""
    some, size = [], 0
    for one in parameters:
        if size < _MOST_BYTES:
            some.append(one.detach())
            size += one.nbytes
    took = []
    for _ in range(_ZEROS):
        began = monotonic()
        filled = [one.new_zeros(()).expand(one.shape).clone() for one in some]
        took.append(monotonic() - began)
        del filled
    return statistics.median(took) * sum(one.nbytes for one in parameters) / max(size, 1)
