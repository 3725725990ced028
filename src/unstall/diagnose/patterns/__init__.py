"""The patterns, one file each: a subclass of :class:`~unstall.diagnose.patterns.base.Pattern` and its one object.

A new pattern is a new file here, or an entry point of the group ``unstall.patterns`` in another package; reports,
experiments, remedies and the index of the documentation read it from its object: see docs/adding-a-pattern.md.
"""

from __future__ import annotations

from functools import cache

from unstall.diagnose.patterns.base import Pattern
from unstall.registry import load


@cache
def all_patterns() -> dict[str, Pattern]:
    """Every pattern by its name, those of other packages included."""
    return load("unstall.patterns", __name__, Pattern)
