"""What an intervention is. Imported by the user's processes too: standard library only."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any, ClassVar

from unstall.child import seams

if TYPE_CHECKING:
    from types import FunctionType

    from unstall.child.experiments.engine import Engine
    from unstall.records.measurements import Measurement
    from unstall.records.report import Report

Specification = dict[str, Any]
"""A wanted intervention as JSON: its ``kind``, its ``class``, and its arguments."""


class Intervention:
    """A change to the running program that can be switched on and off between two steps.

    The class attributes and class methods are for the parent, which makes no instance: they say when the intervention
    is worth trying, what its result proves, and what the pipeline model calls the same change. The instances live in
    the user's processes.
    """

    name: ClassVar[str] = ""
    """The intervention's name in reports and specifications, unique among all."""
    component: ClassVar[str] = ""
    """The kind of work that is freed, as ``--stub`` and ``--delay`` call it; empty where none of its own is."""
    title: ClassVar[str] = ""
    """The name of the experiment that frees the component, as a person reads it: ``without env``."""
    phase: ClassVar[str] = ""
    """The phase of the step that the component's time is in."""
    proves: ClassVar[str] = ""
    """The pattern that gets the verdict when freeing the component gains most; empty where it can be no verdict."""
    is_training: ClassVar[bool] = False
    """The component is what the program is there for, so its gain is a ceiling and never a finding."""
    touches_data: ClassVar[bool] = False
    """It changes the data pipeline: after a switch, workers need time to fall quiet, or to fill their queues."""
    can_be_slowed: ClassVar[bool] = False
    """``--delay`` may name the component: :meth:`targets` are then the functions that do its work."""

    @classmethod
    def specification(cls, **arguments: Any) -> Specification:
        """This intervention with its arguments, as the user's processes get it."""
        return {"kind": cls.name, "class": path_of(cls), **arguments}

    @classmethod
    def share(cls, report: Report, measurement: Measurement) -> float:
        """The share of the step that the component takes, by the first run: a small one is not worth trying."""
        return next((phase.share for phase in report.phases if phase.name == cls.phase), 0.0)

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """The same change as arguments of :func:`unstall.model.parse`; None where the model cannot tell."""
        return {"scales": {cls.component: 0.0}} if cls.component else None

    @classmethod
    def targets(cls) -> list[FunctionType] | None:
        """In the user's process: the live functions that do this kind of work; None where a specification names them.

        The file of a seam finds them, by the component. The recorder may have wrapped one: then it is the function
        inside, so that its span is recorded all the same.
        """
        find = seams.finders().get(cls.component)
        return find() if find is not None else None

    def __init__(self, engine: Engine, key: str, spec: Specification):
        self.engine = engine
        self.key = key
        self.spec = spec
        self._emitted: set[str] = set()

    def on(self) -> None:
        """Put the intervention in force in this process."""
        raise NotImplementedError

    def off(self) -> None:
        """Leave the program as it was."""
        raise NotImplementedError

    def restore(self) -> None:
        """Another was switched off that may have been on the same function: put back what it took away."""

    def emit(self, what: str, text: str) -> None:
        """Tell the parent, once: a ``problem``, why what is measured is not to be believed; a ``note`` for a person."""
        if text not in self._emitted:
            self._emitted.add(text)
            self.engine.emit("intervention", key=self.key, what=what, text=text)


def key_of(spec: Specification) -> str:
    """The same for two specifications of the same intervention."""
    return json.dumps(spec, sort_keys=True)


def path_of(intervention: type[Intervention]) -> str:
    """Where a class can be imported from: ``package.module:Class``."""
    return f"{intervention.__module__}:{intervention.__qualname__}"


def load(path: str) -> type[Intervention]:
    """The class at such a path."""
    module, _, name = path.partition(":")
    intervention: type[Intervention] = getattr(importlib.import_module(module), name)
    return intervention
