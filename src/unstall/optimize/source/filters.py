"""Convolutions that filter each channel by itself, and the same along one axis after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.optimize.source.edit import Edit, edited
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_runtime

_CONVOLUTIONS = frozenset(("torch.nn.functional.conv2d", "torch.conv2d"))
_GROUPS = 6
"""Place of the argument."""


def channel_filters(module: SourceModule, part: cst.FunctionDef | cst.Module) -> Iterator[cst.Call]:
    """The calls in a function, or at the top level, that may filter each channel of an image by itself."""
    function = part if isinstance(part, cst.FunctionDef) else None
    for node in module.inside(part):
        if not isinstance(node, cst.Call) or module.enclosing(node, cst.FunctionDef) is not function:
            continue
        has_groups = len(node.args) > _GROUPS or any(
            argument.keyword is not None and argument.keyword.value == "groups" for argument in node.args
        )
        if has_groups and not any(argument.star for argument in node.args) and module.name(node.func) in _CONVOLUTIONS:
            yield node


def by_axes(module: SourceModule, calls: Sequence[cst.Call]) -> cst.Module:
    """The tree with these calls. Raises SourceError where the file's names are in the way."""
    edits: dict[cst.CSTNode, Edit] = dict.fromkeys(calls, _applied)
    return with_runtime(edited(module.tree, edits), "separable_filter")


def _applied(call: cst.Call) -> cst.Call:
    convolve = cst.Arg(call.func, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return call.with_changes(func=cst.parse_expression("_SeparableFilter.apply"), args=[convolve, *call.args])
