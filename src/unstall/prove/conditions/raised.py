"""Whether an error in a function that both sides have is told by both: one that ends a thread alone is told to nobody.

Asked of functions that the change calls in another way than the original does: where it was called in turn and is
called by threads now, an error has another way to take. And of functions that the change has brought.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from unstall.prove import thresholds
from unstall.prove.lines.calls import Calls
from unstall.prove.lines.sources import Change, parsed
from unstall.prove.lines.syntax import FUNCTIONS
from unstall.prove.runner import WholeRun
from unstall.prove.trees import Files

_CALL = 2  # the first may be a try, or one for all
_LAST_WORDS = frozenset(("__del__", "__exit__", "__aexit__"))
"""Functions whose errors are dropped by Python, or stand behind another one."""


class Failing(NamedTuple):
    """A function that is let fail."""

    where: str
    """In words that follow "not the same"."""
    plan: Mapping[str, Any]
    is_new: bool
    """Whether the change has brought it."""


def failing(change: Change, calls: Calls) -> Iterator[Failing]:
    """Functions that both sides have and the change uses, and functions of the change, the ones that are called most
    often first.

    ``calls``: how often each function of the changed program was called in a run.
    """
    changed = ((_tree(change.sides.changed, path), frozenset(lines)) for path, lines in change.lines.items())
    used = {name for tree, lines in changed for name in _used(tree, lines)}
    before, after = (
        {path: _defined(_tree(files, path)) for path in {function.path for function in calls}}
        for files in (change.sides.original, change.sides.changed)
    )
    ordered = sorted(((count, function) for function, count in calls.items()), reverse=True)
    both = [each for each in ordered if each[0] >= _CALL and each[1].name in used & before[each[1].path]]
    new = [each for each in ordered if each[1].name in after[each[1].path] - before[each[1].path] - _LAST_WORDS]
    for is_new, functions in ((False, both), (True, new)):
        for count, function in functions[: int(thresholds.FUNCTIONS_RAISED)]:
            where = f" where a call of {function.name} ({Path(function.path).name}) fails"
            plan = {"path": function.path, "name": function.name, "call": min(_CALL, count)}
            yield Failing(where, {"raised": plan}, is_new)


def untold(run: WholeRun) -> str | None:
    """In words, that a program in which a function has failed ends as if nothing had been, or not at all."""
    if run.timed_out:
        return "it does not end"
    return "it ends with exit code 0" if run.raised and not run.effects.status else None


def _tree(files: Files, path: str) -> ast.Module:
    """A file of a side, the change's or not; empty where it has none that can be read."""
    return parsed(files, path) or ast.Module([], [])


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
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS))
