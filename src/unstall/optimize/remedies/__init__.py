"""One file for each remedy, which defines ``REMEDY``; other packages add entry points ``unstall.remedies``."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.metadata import entry_points
from typing import Any

from unstall.optimize.remedies.base import Remedy

GROUP = "unstall.remedies"


def all_remedies() -> dict[str, Remedy]:
    """Every remedy by its name, ours first. An entry point that gives none is left out, with a line that says why."""
    found = {made.name: made for made in _ours()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            made = point.load()
            if not isinstance(made, Remedy):
                raise TypeError(f"{made!r} is no Remedy")
            if made.name in found:
                raise ValueError(f"there is a {made.name!r} already")
        except Exception as error:
            print(f"unstall: {GROUP}: {point.value} is left out: {type(error).__name__}: {error}", file=sys.stderr)
        else:
            found[made.name] = made
    return found


def _ours() -> list[Any]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return [module.REMEDY for module in modules if hasattr(module, "REMEDY")]
