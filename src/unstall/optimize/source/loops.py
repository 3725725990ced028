"""What becomes of a loop, for every remedy that writes one anew."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst


@dataclass(frozen=True)
class RewrittenLoop:
    """A loop or comprehension, and the module without it."""

    function: str
    """The function that it is in."""
    node: cst.CSTNode
    """The loop, in the module as it was."""
    tree: cst.Module
    """The module with what stands in the loop's place."""
    lines: tuple[tuple[int, int], ...]
    """First and last line of the loop, and of the functions that are replaced with it."""
    key: str
    """Tells it from the function's other loops."""
