"""Both sides with other numbers in their files than they have, for what a run with those does not show."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from unstall.prove.trees import Sides


class OtherSides(NamedTuple):
    """Two programs to compare in place of the original and the changed one."""

    sides: Sides
    where: str
    """What is other, in words that follow what happens."""


def with_numbers(content: bytes, numbers: Mapping[ast.expr, float]) -> bytes:
    """A source with other numbers in these places of it."""
    lines = content.splitlines(keepends=True)
    for node in sorted(numbers, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        line, end = lines[node.lineno - 1], node.end_col_offset
        lines[node.lineno - 1] = line[: node.col_offset] + repr(numbers[node]).encode() + line[end:]
    return b"".join(lines)
