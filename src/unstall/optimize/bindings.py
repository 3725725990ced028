"""What the names of a function and of its module stand for, as far as the syntax tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """By node: the one it stands in."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def above(parents: dict[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    """What a node stands in, the nearest first."""
    while node in parents:
        node = parents[node]
        yield node


def names_made(function: ast.AST) -> set[str]:
    """Names that a function binds itself: assignments, loops, imports, exceptions, inner functions and their own."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef) and node is not function:
            found.add(node.name)
    return found


def root(node: ast.expr) -> tuple[str, str | None]:
    """The name that a chain of attributes, items and calls begins with, and its first attribute."""
    first = None
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute):
            first = node.attr
        node = node.func if isinstance(node, ast.Call) else node.value
    return (node.id, first) if isinstance(node, ast.Name) else ("", first)


def dotted(node: ast.expr) -> str:
    """``a.b.c`` for names and attributes, '' for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""
