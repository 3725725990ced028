"""Words for what Python's sources are made of, beside those of :mod:`ast`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.While, ast.AsyncFor)

_LONGEST = 40


def words(node: ast.AST) -> str:
    """The beginning of a part of the source, for a person."""
    return ast.unparse(node).splitlines()[0].removesuffix(":")[:_LONGEST]


def called(call: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def assigned(assignment: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment; of ``A, B = 1, 2`` those of each."""
    value = assignment.value
    for target in assignment.targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts)
        else:
            yield target, value


def reachable(
    names: set[str], functions: Mapping[str, Sequence[ast.AST]], used: Callable[[ast.AST], set[str]]
) -> set[str]:
    """Of these functions, those with one of these names, and all that they use.

    ``used``: the names that a function uses.
    """
    found: set[str] = set()
    left = [name for name in names if name in functions]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [other for function in functions[name] for other in used(function) if other in functions]
    return found
