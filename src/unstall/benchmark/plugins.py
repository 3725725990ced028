"""Which phases and seams other packages declare, looked up once for all processes of the program."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from unstall.child.plugins import PHASES, SEAMS, Declared


@cache
def declared() -> Declared:
    """The entry points of packages that are installed beside unstall, by group; nothing of them is imported."""
    return {
        group: sorted((entry.name, entry.value.partition("[")[0].strip()) for entry in entry_points(group=group))
        for group in (PHASES, SEAMS)
    }
