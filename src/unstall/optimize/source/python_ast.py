"""Helpers of the readings that are written on Python's own syntax tree, see :attr:`SourceModule.ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """By node: the one it stands in."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def ancestors(parents: dict[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    """What a node stands in, the nearest first."""
    while node in parents:
        node = parents[node]
        yield node


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for names and attributes, '' for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def root(node: ast.AST) -> str:
    """The name that attributes, items and calls hang on; '' where it is no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> list[str]:
    """Names that are loaded or stored in these nodes, in the order in which they appear."""
    found = [
        node.id
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    ]
    return list(dict.fromkeys(found))
