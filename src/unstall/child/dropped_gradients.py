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

_NONE = object()
_NEVER = 4
"""Steps of another optimizer from which on a model's own is taken to be none: it would have stepped in between."""


@dataclass
class _Model:
    """A model that is called for itself."""

    reference: weakref.ref[Any]
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
        self._passing: set[int] = set()
        """Models given something that has a gradient itself: they are needed on its way, whatever else they are for."""

    def called(self, model: Any, given: Any) -> None:
        """A model is called with this first argument."""
        with reading.unobserved():
            is_end = type(given) in self._tensors and not self._requires.__get__(given)
        if not is_end:
            self._passing.add(id(model))
        elif id(model) not in self._models and len(self._models) < 8:
            self._models[id(model)] = _Model(weakref.ref(model))

    def stepping(self, optimizer: Any, step_path: Path, lines: Mapping[Path, float]) -> None:
        """An optimizer is about to step.

        Args:
            optimizer: any.
            step_path: the way to the call of its ``step``.
            lines: seconds of backward since the last such call, by the line whose gradients it computed.
        """
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
                    self._leave(model, held, _through(root, step_path, lines))
                else:
                    self._settle(model, held)

    def _leave(self, model: _Model, held: Mapping[int, Any], lines: Mapping[Path, float]) -> None:
        model.left += bool(held)
        for parameter, gradient in held.items():
            model.pending.setdefault(parameter, weakref.ref(gradient))
        for path, seconds in lines.items():
            model.pending_s[path] = model.pending_s.get(path, 0.0) + seconds

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


def _through(root: Any, step_path: Path, lines: Mapping[Path, float]) -> dict[Path, float]:
    """Seconds of the lines that a model's forward leads to, by the way that they share with the optimizer's step."""
    code = reading.code_of(root, "forward")
    if code is None:
        return {}
    numbers = [line for _, _, line in code.co_lines() if line is not None]
    inside = range(code.co_firstlineno, max(numbers) + 1)
    through: dict[Path, float] = {}
    for path, seconds in lines.items():
        if any(file == code.co_filename and name == code.co_name and line in inside for file, name, line in path):
            shared = path[: _shared(path, step_path)]
            through[shared] = through.get(shared, 0.0) + seconds
    return through


def _shared(path: Path, other: Path) -> int:
    """How many frames two ways share, from the outermost, by their functions."""
    differ = (place for place, (one, two) in enumerate(zip(path, other)) if one[:2] != two[:2])
    return next(differ, min(len(path), len(other)))


def of_this_torch() -> GradientUse | None:
    """None where torch is too old."""
    try:
        return GradientUse(sys.modules["torch"])
    except AttributeError:
        return None
