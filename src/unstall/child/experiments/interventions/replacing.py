"""What the interventions on functions share: find them, put a stand-in in their place, take it away."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from unstall.child.experiments import functions
from unstall.child.experiments.interventions.base import Intervention, Specification, load


class ReplacingIntervention(Intervention):
    """An intervention on the functions that ``spec["name"]`` names, or on those behind a kind of work."""

    replaced: list[functions.Replacement] | None = None

    @classmethod
    def specification(cls, **arguments: Any) -> Specification:
        """This intervention with its arguments, the component as the default name."""
        return super().specification(**{"name": cls.component, **arguments})

    def on(self) -> None:
        if not self.replaced:
            self.replaced = [functions.Replacement(function, self.stand_in()) for function in self._find()]
        self.restore()

    def off(self) -> None:
        for replacement in self.replaced or ():
            replacement.off()

    def restore(self) -> None:
        for replacement in self.replaced or ():
            replacement.on()

    def stand_in(self) -> functions.StandIn:
        """A new stand-in, ``stand_in(original, args, kwargs)``, for one function."""
        raise NotImplementedError

    def refuses(self, function: FunctionType) -> str | None:
        """Why this function cannot be stood in for, if so."""
        return None

    def _find(self) -> list[FunctionType]:
        try:
            targets = self._work().targets()
            if targets is None:
                targets = functions.find(self.spec["name"], self.spec.get("file"))
        except functions.NotFound:
            return []  # not in this process: loader workers hold other functions than the main process
        for function in targets:
            reason = self.refuses(function)
            if reason is not None:
                self.emit("problem", reason)
                return []
        for function in targets:
            self.emit("found", f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}")
        return targets

    def _work(self) -> type[Intervention]:
        """The intervention whose targets are replaced: another one where its work is slowed."""
        path = self.spec.get("target")
        return load(path) if path is not None else type(self)
