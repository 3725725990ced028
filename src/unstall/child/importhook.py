"""Run a function right after a module's own code has run, without importing it, and without a trace in it.

The module's real loader does the work: only its ``exec_module`` is shadowed, on that one instance, for that one
import. ``__spec__``, ``__loader__`` and everything that reads sources through them stay what they were.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Install = Callable[[ModuleType], None]


def spec_of_others(
    finder: object, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """What a module's spec would be if ``finder`` were not on ``sys.meta_path``."""
    for other in sys.meta_path:
        if other is not finder and hasattr(other, "find_spec"):
            spec = other.find_spec(fullname, path, target)
            if spec is not None:
                return spec
    return None


class PostImport:
    """A meta path finder that finds nothing itself: it lets the others find, and marks the targets' loaders."""

    def __init__(self, targets: dict[str, list[Install]], on_error: Callable[[str, Exception], None]):
        self.targets = targets
        self.on_error = on_error

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.targets:
            return None
        spec = spec_of_others(self, fullname, path, target)
        if spec is not None:
            self._mark(fullname, spec.loader)
        return spec

    def _mark(self, fullname: str, loader: Any) -> None:
        original = getattr(loader, "exec_module", None)
        if original is None or isinstance(loader, type):  # a class is shared by all built-in modules
            return

        def exec_module(module: ModuleType) -> None:
            try:
                del loader.exec_module
            except AttributeError:
                pass
            original(module)
            self.install(fullname, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader without instance attributes: this library goes unseen
            self.on_error(fullname, AttributeError(f"its loader {type(loader).__name__} cannot be watched"))

    def install(self, fullname: str, module: ModuleType) -> None:
        for install in self.targets[fullname]:
            try:
                install(module)
            except Exception as error:
                self.on_error(fullname, error)

    def install_loaded(self) -> None:
        """Install the seams of the libraries that are imported already."""
        for fullname in self.targets:
            module = sys.modules.get(fullname)
            if module is not None:
                self.install(fullname, module)
