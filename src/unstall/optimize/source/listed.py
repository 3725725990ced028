"""Tensors that a line makes of lists, and the same made by way of NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.diagnose.vocabulary import TENSOR_CONSTRUCTORS
from unstall.optimize.source.edit import Edit, edited
from unstall.optimize.source.module import SourceModule, number_of
from unstall.optimize.source.toplevel import with_runtime

_CONSTRUCTORS = {f"torch.{name}" for name in TENSOR_CONSTRUCTORS}


def listed_tensors(module: SourceModule, part: cst.FunctionDef | cst.Module) -> Iterator[cst.Call]:
    """The calls in a function, or at the top level, that make a tensor of what may be a list when the program runs."""
    function = part if isinstance(part, cst.FunctionDef) else None
    for node in module.inside(part):
        if not isinstance(node, cst.Call) or module.enclosing(node, cst.FunctionDef) is not function:
            continue
        if module.name(node.func) in _CONSTRUCTORS and node.args:
            first, *options = node.args
            by_name = all(option.keyword is not None for option in options)
            if first.keyword is None and not first.star and by_name and number_of(first.value) is None:
                yield node


def by_arrays(module: SourceModule, calls: Sequence[cst.Call]) -> cst.Module:
    """The tree that makes these tensors by way of NumPy. Raises SourceError where the file's names are in the way."""
    edits: dict[cst.CSTNode, Edit] = dict.fromkeys(calls, _made)
    return with_runtime(edited(module.tree, edits), "listed_tensors")


def _made(call: cst.Call) -> cst.Call:
    constructor = cst.Arg(call.func, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return call.with_changes(func=cst.parse_expression("_ListedTensors.make"), args=[constructor, *call.args])
