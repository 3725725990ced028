"""Arguments that a function of both sides looked at, and the changed one does not: it goes by what it was given once.

Tensors that are taken hold of when an object is made are those of the model, until a checkpoint is loaded or another
model is given; in a run in which neither happens, nothing shows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from unstall.prove.lines.sources import Change
from unstall.prove.lines.syntax import FUNCTIONS, Function


def first(change: Change) -> str | None:
    """In words, the first of them; None where there is none."""
    for source in change.sources:
        before = dict(_functions(source.before))
        for name, function in _functions(source.after):
            last = function.end_lineno or function.lineno
            is_changed = any(function.lineno <= line <= last for line in source.lines)
            dropped = _used(before[name]) - _used(function) if name in before and is_changed else set()
            for argument in sorted(dropped & _named(function)):
                place = source.place(function.lineno)
                return f"{name} ({place}) no longer looks at its argument {argument}: with another it does the same"
    return None


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """(qualified name, function), the functions within others too."""
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            inner = f"{prefix}{node.name}."
            if isinstance(node, FUNCTIONS):
                yield f"{prefix}{node.name}", node
        yield from _functions(node, inner)


def _named(function: Function) -> set[str]:
    arguments = function.args
    return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _used(function: Function) -> set[str]:
    """Its arguments that its body looks at; those without a body of its own, none."""
    names = {node.id for statement in function.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return names & _named(function)
