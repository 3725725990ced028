"""One file a remedy: ``NAME``, ``AREA``, ``EXACTNESS`` and ``propose(case)``. A new remedy is a new file here."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def every() -> list[Any]:
    """All remedies, by name of their file."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return [module for module in modules if hasattr(module, "propose")]
