"""One file per library that unstall hooks into. Each has ``TARGETS``: module name → function that installs the seam.

A new seam is a new file here. They run in the user's process: standard library only, the library itself comes as
the argument, fully imported; what a seam replaces must behave exactly as before.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def targets() -> dict[str, list[Any]]:
    """Every seam's targets, merged."""
    merged: dict[str, list[Any]] = {}
    for info in pkgutil.iter_modules(__path__):
        seam = importlib.import_module(f"{__name__}.{info.name}")
        for module, install in seam.TARGETS.items():
            merged.setdefault(module, []).append(install)
    return merged
