"""Count how many elements each operator of torch takes, line by line of the program, in each quarter of the steps.

``plan["steps"]``: how many the optimizers make. ``volume.json``, at the end of the first process: [path, function, its
first line, operator, line, elements in some steps in the middle of each quarter]; nothing where the steps are few. What
a view or a lookup does not read is not counted. ``validations.json``: the same of the first four validations, each from
a model's first call that trains nothing to the next one in training.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from unstall.child import trial

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUARTERS = 4
_LEAST_STEPS, _MOST_STEPS = 16, 4  # of all, and that are counted in each quarter
_LOOKUPS = frozenset(
    ("index", "index_select", "gather", "embedding", "take", "_index_put_impl_", "index_put", "index_put_")
)
"""Operators that take as much of their first argument as the others say."""

Place = tuple[str, str, int, str, int]


class Volume:
    """Of the main process."""

    def __init__(self, folder: str, steps: int):
        self.path = os.path.join(folder, "volume.json")
        self.pid = os.getpid()
        self.quarter_of = counted_steps(steps)
        self.steps = 0
        self.quarter: int | None = None
        """The quarter in which is counted just now."""
        self.mode: Any = None
        """In which torch tells what is called, where it is entered; every call takes three times as long then."""
        self.elements: dict[Place, list[int]] = {}
        self.validations_path = os.path.join(folder, "validations.json")
        self.validation: int | None = None
        """The one in which is counted just now."""
        self.validations = 0
        self.of_validations: dict[Place, list[int]] = {}

    def step(self) -> None:
        """An optimizer has made a step."""
        self.steps += 1
        self.quarter = self.quarter_of.get(self.steps) if os.getpid() == self.pid else None
        self.validation = None
        self.switch()

    def call(self, *, training: bool) -> None:
        """A model has been called from outside of any."""
        is_validation = not training and self.steps > 0 and os.getpid() == self.pid
        if is_validation == (self.validation is not None):
            return
        if is_validation and self.validations < _QUARTERS:
            self.validation = self.validations
            self.validations += 1
        else:
            self.validation = None
        self.switch()

    def switch(self) -> None:
        """Enter the mode, or leave it, unless one of the program's own is around."""
        modes = importlib.import_module("torch.utils._python_dispatch")
        innermost: Any = modes._get_current_dispatch_mode()
        is_wanted = self.quarter is not None or self.validation is not None
        if is_wanted and self.mode is None and innermost is None:
            self.mode = _mode(modes.TorchDispatchMode, self)
            self.mode.__enter__()
        elif not is_wanted and self.mode is not None and innermost is self.mode:
            self.mode.__exit__(None, None, None)
            self.mode = None

    def take(self, operator: Any, args: tuple[Any, ...], frame: Any) -> None:
        """An operator has been called in some quarter, or validation."""
        if os.getpid() != self.pid or trial.is_unseen() or getattr(operator, "is_view", False):
            return
        name = operator.__name__.partition(".")[0]
        caller = trial.user_frame_above(frame)
        if caller is None:
            return
        code = caller.f_code
        place = (code.co_filename, code.co_name, code.co_firstlineno, name, caller.f_lineno)
        taken = sum(_elements(args[1:] if name in _LOOKUPS else args))
        if self.validation is not None:
            self.of_validations.setdefault(place, [0] * _QUARTERS)[self.validation] += taken
        elif self.quarter is not None:
            self.elements.setdefault(place, [0] * _QUARTERS)[self.quarter] += taken

    def write(self) -> None:
        """Write it down."""
        if os.getpid() != self.pid:
            return
        for path, elements in ((self.path, self.elements), (self.validations_path, self.of_validations)):
            with open(path, "w") as file:
                json.dump([[*place, taken] for place, taken in elements.items()], file)


def counted_steps(steps: int) -> dict[int, int]:
    """Steps that have been made → the quarter in whose middle they are: after these, operators are counted."""
    if steps < _LEAST_STEPS:
        return {}
    many = min(_MOST_STEPS, steps // (2 * _QUARTERS))
    middles = [(2 * quarter + 1) * steps // (2 * _QUARTERS) for quarter in range(_QUARTERS)]
    return {middle - many // 2 + number: quarter for quarter, middle in enumerate(middles) for number in range(many)}


def _elements(values: Any) -> Iterator[int]:
    """Of each tensor in arguments."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _elements(value)
        elif hasattr(value, "numel"):
            yield int(value.numel())


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Look at each call of an operator in some steps."""
    if trial.is_helper():
        return []
    volume = Volume(folder, int(plan["steps"]))

    def called(model: Any, args: tuple[Any, ...], result: Any) -> None:
        if not trial.is_unseen():
            volume.call(training=model.training)

    return [
        ("torch", lambda module: atexit.register(volume.write)),
        ("torch.optim.optimizer", lambda module: trial.after_optimizer_steps(module, volume.step)),
        ("torch.nn.modules.module", lambda module: trial.after_model_calls(module, called)),
    ]


def _mode(base: Any, volume: Volume) -> Any:
    """One that sees each operator as it is called. ``base``: ``TorchDispatchMode``."""

    class Watching(base):  # type: ignore[misc]
        """Tells the volume."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                volume.take(func, (*args, *(kwargs or {}).values()), sys._getframe(1))
            except Exception:  # it is not counted then
                pass
            return func(*args, **(kwargs or {}))

    return Watching()
