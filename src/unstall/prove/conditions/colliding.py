"""Whether the changed program does the same where two different things have one checksum, if it goes by checksums.

In a run of a few hundred samples no two have, in one of a few hundred thousand some have; and with ``hash`` numbers as
-1 and -2.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from unstall.child.trial.colliding import CHECKSUMS
from unstall.prove.lines.sources import Change

PLAN: Mapping[str, Any] = {"colliding": {}}
WHERE = " where two things have the same checksum"


def goes_by_checksums(change: Change) -> bool:
    """Whether a changed line names a function that makes one."""
    return any(
        node.lineno in source.lines and _name(node) in CHECKSUMS
        for source in change.sources
        for node in ast.walk(source.after)
        if isinstance(node, (ast.Name, ast.Attribute))
    )


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
