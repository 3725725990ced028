"""What the interventions on functions share: find them, put a stand-in in their place, take it away."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from unstall.child import seams
from unstall.simplify import functions
from unstall.simplify.interventions.base import Intervention


class Swapping(Intervention):
    """An intervention on the functions of ``spec["name"]``: a qualified name, or a kind of work that a seam finds."""

    swapped: list[functions.Swapped] | None = None

    def on(self) -> None:
        if not self.swapped:
            self.swapped = [functions.Swapped(function, self.stand_in()) for function in self._find()]
        for one in self.swapped:
            one.on()

    def off(self) -> None:
        for one in self.swapped or ():
            one.off()

    def restore(self) -> None:
        for one in self.swapped or ():
            one.on()

    def stand_in(self) -> Any:
        """A new stand-in, ``stand_in(original, args, kwargs)``, for one function."""
        raise NotImplementedError

    def refuses(self, function: FunctionType) -> str | None:
        """Why this function cannot be stood in for, if so."""
        return None

    def _find(self) -> list[FunctionType]:
        name = self.spec["name"]
        try:
            find = seams.finders().get(name)
            found = find() if find is not None else functions.find(name, self.spec.get("file"))
        except functions.NotFound:
            return []  # not in this process: loader workers hold other functions than the main process
        for function in found:
            reason = self.refuses(function)
            if reason is not None:
                self.problem(reason)
                return []
        for function in found:
            self._tell("found", f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}")
        return found
