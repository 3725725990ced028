"""Helpers of the readings that are written on Python's own syntax tree, see :attr:`SourceModule.ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> list[str]:
    """Names that are loaded or stored in these nodes, in the order in which they appear."""
    found = [
        node.id
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    ]
    return list(dict.fromkeys(found))
