"""Whether the changed program does the same where two different things have one checksum, if it goes by checksums.

In a run of a few hundred samples no two have, in one of a few hundred thousand some have; and with ``hash`` numbers as
-1 and -2.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from unstall.child.trial.colliding import CHECKSUMS
from unstall.prove.lines.sources import of_change
from unstall.prove.trees import Sides

PLAN: Mapping[str, Any] = {"colliding": {}}
WHERE = " where two things have the same checksum"


def goes_by_checksums(sides: Sides, lines: Mapping[str, Sequence[int]]) -> bool:
    """Whether a changed line names a function that makes one. ``lines``: the changed lines of each file."""
    return any(
        node.lineno in source.lines and _name(node) in CHECKSUMS
        for source in of_change(sides, lines)
        for node in ast.walk(source.after)
        if isinstance(node, (ast.Name, ast.Attribute))
    )


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
