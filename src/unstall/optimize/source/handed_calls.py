"""Calls that are handed, with what they call, to a function of the patches' runtime that may do the same otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from unstall.optimize.source.edit import Edit, edited
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_runtime


def calls_in(
    module: SourceModule, part: cst.FunctionDef | cst.Module, is_meant: Callable[[cst.Call], bool]
) -> Iterator[cst.Call]:
    """The calls that are meant in a function, or at the top level; none in the functions within."""
    function = part if isinstance(part, cst.FunctionDef) else None
    for node in module.inside(part):
        if isinstance(node, cst.Call) and module.enclosing(node, cst.FunctionDef) is function and is_meant(node):
            yield node


def handed_to(module: SourceModule, calls: Sequence[cst.Call], receiver: str, runtime: str) -> cst.Module:
    """The tree in which ``receiver(called, ...)`` stands for each ``called(...)``, with that module of the runtime.

    Raises NameTaken where the file's names are in the way.
    """

    def hand(call: cst.Call) -> cst.Call:
        called = cst.Arg(call.func, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        return call.with_changes(func=cst.parse_expression(receiver), args=[called, *call.args])

    edits: dict[cst.CSTNode, Edit] = dict.fromkeys(calls, hand)
    return with_runtime(edited(module.tree, edits), runtime)
