"""One file per pattern. Each has ``match(look) -> Finding | None``: evidence in numbers, or nothing.

A new pattern is a new file here; nothing else changes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from unstall.records.report import Finding
from unstall.trace.look import Look

Match = Callable[[Look], Finding | None]


def all_patterns() -> list[Match]:
    """Every pattern's ``match``."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}").match for name in names]
