"""One file for each remedy, which defines ``REMEDY``; other packages add entry points ``unstall.remedies``."""

from __future__ import annotations

from unstall.optimize.remedies.base import Remedy
from unstall.registry import load

GROUP = "unstall.remedies"


def all_remedies() -> dict[str, Remedy]:
    """Every remedy by its name, ours first."""
    return load(GROUP, __name__, Remedy)
