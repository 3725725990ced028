"""The protocol of an intervention in the user's process. Standard library only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstall.simplify.engine import Engine


class Intervention:
    """A change to the running program that can be switched on and off between two steps."""

    def __init__(self, engine: Engine, key: str, spec: dict[str, Any]):
        self.engine = engine
        self.key = key
        self.spec = spec
        self._told: set[str] = set()

    def on(self) -> None:
        """Put it in force in this process."""
        raise NotImplementedError

    def off(self) -> None:
        """The program is as it was."""
        raise NotImplementedError

    def restore(self) -> None:
        """Another was switched off that may have been on the same function: put back what it took away."""

    def problem(self, text: str) -> None:
        """Tell the parent, once, why what is measured with it is not to be believed."""
        self._tell("problem", text)

    def note(self, text: str) -> None:
        """Tell the parent, once, what a person should know about it."""
        self._tell("note", text)

    def _tell(self, kind: str, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.engine.tell("intervention", key=self.key, what=kind, text=text)


def key_of(spec: dict[str, Any]) -> str:
    """The same for two specifications of the same intervention."""
    return json.dumps(spec, sort_keys=True)
