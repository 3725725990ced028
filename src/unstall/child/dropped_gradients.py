"""Gradients that backward computes for another optimizer, which drops them. Runs in the user's process.

As where a critic learns from what a generator has made with gradients on: backward goes through the generator too, and
`zero_grad()` drops what it computes there before the generator's own optimizer steps. Or as where a student learns
from a teacher that no optimizer steps for.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unstall.child import gradients, reading
from unstall.child.op_times import Path
from unstall.child.user_files import is_program_file

_NONE = object()
_MOST_WAYS = 64
_NEVER = 4
"""Steps of another optimizer from which on a model's own is taken to be none: it would have stepped in between."""


@dataclass
class _Model:
    """A model that is called for itself."""

    reference: weakref.ref[Any]
    forward: tuple[str, str] | None
    """File and name of its ``forward``, where that is the program's."""
    pending: dict[int, weakref.ref[Any]] = field(default_factory=dict)
    """The gradients that another's optimizer has left, by the parameter."""
    pending_s: dict[Path, float] = field(default_factory=dict)
    """Seconds of backward that they took, by the way to the call of the model."""
    dropped_s: dict[Path, float] = field(default_factory=dict)
    """The same, of those that were dropped."""
    left: int = 0
    """How often another's optimizer stepped and left gradients; since the model's own did, if it has one."""
    settled: bool = False
    """Whether an optimizer of its own has stepped."""

    def wasted(self) -> list[tuple[Path, float]]:
        """Seconds of backward that nothing uses, by the way to the call of the model."""
        never = not self.settled and self.left >= _NEVER
        return [*self.dropped_s.items(), *(self.pending_s.items() if never else ())]


class GradientUse:
    """Told of calls of models and of optimizers about to step, in order."""

    def __init__(self, torch: Any):
        """AttributeError where torch is too old."""
        self._gradient = torch.Tensor.grad
        self._requires = torch.Tensor.requires_grad
        self._tensors = (torch.Tensor, torch.nn.Parameter)
        self._models: dict[int, _Model] = {}
        self._called: dict[Path, set[int]] = {}
        """Models by the way to their calls."""
        self._passing: set[int] = set()
        """Models given something that has a gradient itself: they are needed on its way, whatever else they are for."""

    def called(self, model: Any, given: Any, path: Path) -> None:
        """A model is called with this first argument, by this way."""
        with reading.unobserved():
            is_end = type(given) in self._tensors and not self._requires.__get__(given)
        if not is_end:
            self._passing.add(id(model))
        elif id(model) not in self._models and len(self._models) < 8:
            self._models[id(model)] = _Model(weakref.ref(model), _forward(model))
        if path in self._called or len(self._called) < _MOST_WAYS:
            self._called.setdefault(path, set()).add(id(model))

    def stepping(self, optimizer: Any, lines: Mapping[Path, float]) -> None:
        """An optimizer is about to step. ``lines``: seconds of backward, by line, since the last one did."""
        with reading.unobserved():
            own = {id(parameter) for parameter in gradients.given(optimizer)}
            for address, model in self._models.items():
                root = model.reference()
                if root is None or address in self._passing:
                    continue
                held = {
                    id(each): grad
                    for each in reading.parameters(root)
                    if (grad := self._gradient.__get__(each)) is not None
                }
                if own.isdisjoint(held.keys() | model.pending.keys()):
                    self._leave(model, held, self._through(address, model, lines))
                else:
                    self._settle(model, held)

    def _leave(self, model: _Model, held: Mapping[int, Any], lines: Mapping[Path, float]) -> None:
        model.left += bool(held)
        for parameter, gradient in held.items():
            model.pending.setdefault(parameter, weakref.ref(gradient))
        for path, seconds in lines.items():
            model.pending_s[path] = model.pending_s.get(path, 0.0) + seconds

    def _through(self, address: int, model: _Model, lines: Mapping[Path, float]) -> dict[Path, float]:
        """Seconds of the lines that a model's calls lead to, by the way to the call.

        Where the program's own ``forward`` is not seen on the way, a line that calls several models is none's.
        """
        through: dict[Path, float] = {}
        for path, seconds in lines.items():
            for length in range(len(path), 0, -1):
                way, inside = path[:length], path[length : length + 1]
                called = self._called.get(way, set())
                is_alone = model.forward is None and called == {address}
                is_seen = address in called and any(frame[:2] == model.forward for frame in inside)
                if is_alone or is_seen:
                    through[way] = through.get(way, 0.0) + seconds
                    break
        return through

    def _settle(self, model: _Model, held: Mapping[int, Any]) -> None:
        """The model's own optimizer steps: what was left for it is there still, or was dropped."""
        kept = any(reference() is held.get(parameter, _NONE) for parameter, reference in model.pending.items())
        if model.pending and not kept:
            for path, seconds in model.pending_s.items():
                model.dropped_s[path] = model.dropped_s.get(path, 0.0) + seconds
        model.pending.clear()
        model.pending_s.clear()
        model.settled = True

    def facts(self) -> dict[str, Any] | None:
        """The most that was dropped: seconds, the way to the call, and the model's class; None where nothing was."""
        dropped = [(model, path, seconds) for model in self._models.values() for path, seconds in model.wasted()]
        if not dropped:
            return None
        model, path, _ = max(dropped, key=lambda each: each[2])
        return {
            "path": path,
            "model": type(model.reference()).__qualname__,
            "seconds": sum(seconds for _, _, seconds in dropped),
            "never": not model.settled,
        }


def _forward(model: Any) -> tuple[str, str] | None:
    code = reading.code_of(model, "forward")
    return (code.co_filename, code.co_name) if code is not None and is_program_file(code.co_filename) else None


def of_this_torch() -> GradientUse | None:
    """None where torch is too old."""
    try:
        return GradientUse(sys.modules["torch"])
    except AttributeError:
        return None
