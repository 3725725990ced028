"""Lists that a program binds once and leaves as they are, as far as its source tells."""

from __future__ import annotations

import ast

from unstall.optimize.bindings import above, dotted, parents_of

_READERS = {
    "len", "range", "enumerate", "zip", "sorted", "reversed", "min", "max", "sum", "any", "all", "map", "filter",
    "list", "tuple", "set", "iter", "print", "isinstance", "type",
}  # fmt: skip
_READING_METHODS = {"count", "index", "copy"}
_LIBRARIES = ("np", "numpy", "torch")


def held_arguments(tree: ast.Module, function: str) -> set[int]:
    """Positions at which every call of a module's function is given a name that is bound once, outside of its loop.

    Empty where a call has keywords or starred arguments, where the function is used otherwise than called, and where
    one of the names may be changed.
    """
    parents = parents_of(tree)
    calls: list[ast.Call] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == function:
            call = parents[node]
            if not (isinstance(call, ast.Call) and call.func is node):
                return set()
            calls.append(call)
    if not calls or any(call.keywords or any(isinstance(one, ast.Starred) for one in call.args) for call in calls):
        return set()
    shortest = min(len(call.args) for call in calls)
    held = {place for place in range(shortest) if all(_is_held(tree, parents, call, place) for call in calls)}
    names = {one.id for call in calls for place in held if isinstance(one := call.args[place], ast.Name)}
    return held if all(_is_left_alone(tree, parents, name, function) for name in names) else set()


def _is_held(tree: ast.Module, parents: dict[ast.AST, ast.AST], call: ast.Call, place: int) -> bool:
    """Whether an argument is a name that is bound in one place, which no loop around the call holds."""
    argument = call.args[place]
    if not isinstance(argument, ast.Name):
        return False
    bound = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == argument.id
             and isinstance(node.ctx, (ast.Store, ast.Del))]  # fmt: skip
    loops = {node for node in above(parents, call) if isinstance(node, (ast.For, ast.While, ast.comprehension))}
    return len(bound) == 1 and not loops.intersection(above(parents, bound[0]))


def _is_left_alone(tree: ast.Module, parents: dict[ast.AST, ast.AST], name: str, function: str) -> bool:
    """Whether nothing in the module may change what a name stands for, or give it to what may."""
    return all(
        _only_reads(parents, node, function)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    )


def _only_reads(parents: dict[ast.AST, ast.AST], node: ast.expr, function: str) -> bool:
    above = parents[node]
    if isinstance(above, ast.Subscript) and above.value is node:
        return isinstance(above.ctx, ast.Load) and not _is_changed(parents, above)
    if isinstance(above, ast.Attribute):
        called = parents[above]
        return isinstance(called, ast.Call) and called.func is above and above.attr in _READING_METHODS
    if isinstance(above, (ast.For, ast.comprehension)):
        return above.iter is node
    if isinstance(above, ast.Call):
        name = dotted(above.func)
        head, _, last = name.partition(".")
        return name == function or name in _READERS or (head in _LIBRARIES and "shuffle" not in last)
    return isinstance(above, (ast.Compare, ast.BoolOp, ast.UnaryOp))


def _is_changed(parents: dict[ast.AST, ast.AST], element: ast.expr) -> bool:
    """Whether an element is set at an index, or a method of it is called: it may be a list itself."""
    above = parents[element]
    if isinstance(above, ast.Subscript) and above.value is element:
        return not isinstance(above.ctx, ast.Load) or _is_changed(parents, above)
    return isinstance(above, ast.Attribute) and above.attr not in (*_READING_METHODS, *dir(str))
