"""Whether an error in a function that both sides have is told by both: one that ends a thread alone is told to nobody.

Asked of functions that the change calls in another way than the original does: where it was called in turn and is
called by threads now, an error has another way to take.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unstall.prove import thresholds
from unstall.prove.lines.calls import Calls
from unstall.prove.runner import WholeRun
from unstall.prove.trees import Sides

_CALL = 2  # the first may be a try, or one for all


def plans(sides: Sides, lines: Mapping[str, Sequence[int]], calls: Calls) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(words for a person, plan) of each function that is let fail, the one that is called most often first.

    Args:
        sides: of the proof.
        lines: the changed lines of each file.
        calls: how often each function of the changed program was called in a run.
    """
    used = {name for path, changed in lines.items() for name in _used(_source(sides.changed, path), frozenset(changed))}
    before = {path: _defined(_source(sides.original, path)) for path in {function.path for function in calls}}
    both = [
        (count, function)
        for function, count in calls.items()
        if count >= _CALL and function.name in used and function.name in before[function.path]
    ]
    for _, function in sorted(both, reverse=True)[: int(thresholds.FUNCTIONS_RAISED)]:
        where = f" where a call of {function.name} ({Path(function.path).name}) fails"
        yield where, {"raised": {"path": function.path, "name": function.name, "call": _CALL}}


def is_hidden(original: WholeRun, changed: WholeRun) -> bool:
    """Whether the changed program ends as if nothing had been, and the original does not."""
    return original.raised and changed.raised and bool(original.effects.status) and not changed.effects.status


def _source(files: Mapping[Path, bytes | None], path: str) -> ast.AST:
    """A file of a side; empty where there is none that can be read."""
    try:
        content = files.get(Path(path))
        return ast.parse(Path(path).read_bytes() if content is None else content)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _used(tree: ast.AST, lines: frozenset[int]) -> Iterator[str]:
    """Names that these lines use: what is called there, or handed over to be called."""
    for node in ast.walk(tree):
        if getattr(node, "lineno", None) in lines:
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Subscript):
                yield "__getitem__"


def _defined(tree: ast.AST) -> frozenset[str]:
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
