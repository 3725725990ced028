"""What ``import unstall`` means in the program: what it would mean without us.

The name stands for this package only if the program would find an unstall, be it another copy of it: the recorder that
runs is then the one that its spans reach. A module of the program's own by that name is left to it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from unstall.child.importhook import spec_of_others

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def install() -> None:
    """Do so in this process, once."""
    if not any(isinstance(finder, OwnPackage) for finder in sys.meta_path):
        sys.meta_path.insert(0, OwnPackage())


@contextlib.contextmanager
def ours() -> Iterator[None]:
    """Around a late import from a part of unstall that is not imported yet: the name is the package's meanwhile."""
    theirs = sys.modules.get("unstall")
    spec = _own_spec()
    assert spec is not None
    sys.modules["unstall"] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        del sys.modules["unstall"]
        if theirs is not None:
            sys.modules["unstall"] = theirs


class OwnPackage:
    """A meta path finder for the one name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "unstall":
            return None
        spec = spec_of_others(self, fullname, path, target)
        return _own_spec() if spec is not None and _is_unstall(spec) else spec


def _is_unstall(spec: ModuleSpec) -> bool:
    known_by = os.path.join("child", "bootstrap", "sitecustomize.py")
    return any(os.path.isfile(os.path.join(folder, known_by)) for folder in spec.submodule_search_locations or ())


def _own_spec() -> ModuleSpec | None:
    return importlib.util.spec_from_file_location(
        "unstall", os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE]
    )
