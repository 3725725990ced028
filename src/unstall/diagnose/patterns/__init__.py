"""One file per pattern. Each has ``match(features) -> Finding | None``: evidence in numbers, or nothing.

A new pattern is a new file here; nothing else changes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from unstall.diagnose.features import Features
from unstall.records.report import Finding

Match = Callable[[Features], Finding | None]


def all_patterns() -> dict[str, Match]:
    """Every pattern's ``match`` by the pattern's name."""
    found: dict[str, Match] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        found[info.name.replace("_", "-")] = module.match
    return found
