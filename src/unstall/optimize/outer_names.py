"""What a function reads from outside of it, and whether the module changes that, as far as its source tells."""

from __future__ import annotations

import ast

from unstall.optimize.bindings import above, names_made, parents_of, root
from unstall.optimize.purity import names as names_of

CHANGING = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "add", "write", "fill"}
"""Methods that change what they are called of."""
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def changing(tree: ast.Module, function: ast.FunctionDef) -> str | None:
    """A name that the function reads of the scopes around it, and that stands for something else another time.

    It is bound twice or in a loop, declared global, changed in place, or is a variable that the function calls: a
    model, say, of which is not seen what it holds.
    """
    parents = parents_of(tree)
    around = {tree, *(node for node in above(parents, function) if isinstance(node, _Function))}
    read = set(names_of([function], ast.Load)) - names_made(function) - {"self"}
    called = {
        node.func.id for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    bound: dict[str, int] = {}
    for node in ast.walk(tree):
        lineage = [*above(parents, node)]
        scope = next((one for one in lineage if isinstance(one, (*_Function, ast.Module))), tree)
        if node is function or function in lineage:
            continue
        if isinstance(node, (ast.Global, ast.Nonlocal)) and read & set(node.names):
            return sorted(read & set(node.names))[0]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and scope in around and node.id in read:
            in_loop = any(isinstance(one, (ast.For, ast.While)) for one in lineage[: lineage.index(scope)])
            bound[node.id] = bound.get(node.id, 0) + 1 + in_loop
            if bound[node.id] > 1 or node.id in called:
                return node.id
        name = _changed(node)
        if name in read and (scope in around or name not in names_made(scope)):
            return name
    return None


def changed_in_place(node: ast.AST) -> ast.expr | None:
    """What a node changes in place, if it does: of a call of a changing method, or an item that is set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        return node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node.value
    return None


def _changed(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return root(node)[0]
    place = changed_in_place(node)
    return root(place)[0] if place is not None else None
