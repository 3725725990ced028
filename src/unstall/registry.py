"""One way in for everything that can be added: the modules of a package of ours, and entry points of other packages.

A module of ours defines its object under the name that the kind of thing has in capitals (``PATTERN``, ``REMEDY``...:
the last word of the package's name, in the singular); an entry point names an object. Both are checked alike.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

T = TypeVar("T")


def load(group: str, package: str, protocol: type[T]) -> dict[str, T]:
    """All objects of one kind, ours first, by their ``name``.

    Args:
        group: of the entry points, such as ``unstall.patterns``.
        package: whose modules define ours, such as ``unstall.diagnose.patterns``.
        protocol: a base class, or a protocol that can be checked at run time.

    An object of another package that cannot be imported, or is not what the protocol asks for, is left out, and a
    line on standard error says which and why: a broken plug-in takes nothing else with it.
    """
    found: dict[str, T] = {}
    for made in _of_package(package):
        assert isinstance(made, protocol), f"{made!r} is no {protocol.__name__}"
        found[_name(made)] = made
    for point in plugins(group):
        try:
            made = point.load()
            if not isinstance(made, protocol):
                raise TypeError(f"{made!r} is no {protocol.__name__}")
            if _name(made) in found:
                raise ValueError(f"there is a {_name(made)!r} already")
        except Exception as error:
            _warn(f"{group}: {point.value} is left out: {type(error).__name__}: {error}")
        else:
            found[_name(made)] = made
    return found


def plugins(group: str) -> list[EntryPoint]:
    """What other packages add to a group, by name."""
    return sorted(entry_points(group=group), key=lambda point: point.name)


def _of_package(package: str) -> list[Any]:
    """The object of each module of a package that defines one."""
    attribute = package.rpartition(".")[2].upper()
    attribute = attribute[:-3] + "Y" if attribute.endswith("IES") else attribute.removesuffix("S")
    modules = [
        importlib.import_module(f"{package}.{info.name}")
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__)
    ]
    return [getattr(module, attribute) for module in modules if hasattr(module, attribute)]


def _name(made: Any) -> str:
    return str(made.name)


def _warn(line: str) -> None:
    print(f"unstall: {' '.join(line.split())}", file=sys.stderr)
