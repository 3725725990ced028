"""Rows of pandas frames that only become arrays, and the same rows taken of the frame's array.

``frame.iloc[i]`` makes an object of pandas, which takes longer than the row itself. Where nothing but an array is made
of it, ``frame.values[i]`` gives the same numbers. Of a frame with columns of several types its array is made anew each
time: that is right still, and slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.bindings import mutates
from unstall.optimize.source.edit import Edit, edited, put
from unstall.optimize.source.effects import named
from unstall.optimize.source.module import SourceModule, dotted, is_reference

_INDEXER = "iloc"
_TO_ARRAY = named({"numpy": "array asarray stack vstack concatenate"})
_APPEND = "append"


class RowAsArray(NamedTuple):
    """A row, or several, of which an array is made."""

    node: cst.BaseExpression
    """What is replaced: ``frame.iloc[i]``, or ``frame.iloc[i].values``."""
    row: cst.Subscript
    """``frame.iloc[i]``."""


def rows_as_arrays(module: SourceModule, function: cst.FunctionDef) -> Iterator[RowAsArray]:
    """The places in a function where rows of frames only become arrays."""
    for node in module.inside(function.body):
        if isinstance(node, cst.Subscript) and _is_row(module, node):
            whole = _asked_for_array(module, node)
            if whole is not None:
                if not _is_set(module, function, whole):
                    yield RowAsArray(whole, node)
            elif _goes_into_array(module, function, node):
                yield RowAsArray(node, node)


def by_values(module: SourceModule, rows: Iterable[RowAsArray]) -> cst.Module:
    """The tree with these rows taken of the frame's array."""
    edits: dict[cst.CSTNode, Edit] = {}
    for row in rows:
        assert isinstance(row.row.value, cst.Attribute)
        values = row.row.with_changes(value=row.row.value.with_changes(attr=cst.Name("values")))
        edits[row.node] = put(values)
    return edited(module.tree, edits)


def _is_row(module: SourceModule, node: cst.Subscript) -> bool:
    """Whether it takes rows by their place, of a frame that is asked for by name.

    Of two lists, pandas takes all rows and all columns named, an array those pairs: one of them has to be a slice.
    """
    by_place = isinstance(node.value, cst.Attribute) and node.value.attr.value == _INDEXER
    if not by_place or module.context(node) is not ExpressionContext.LOAD:
        return False
    assert isinstance(node.value, cst.Attribute)
    each = [element.slice for element in node.slice]
    if len(each) == 1 and isinstance(each[0], cst.Index) and isinstance(each[0].value, cst.Lambda):
        return False
    picked = [index for index in each if not isinstance(index, cst.Slice)]
    return len(picked) <= 1 and is_reference(node.value.value, cst.SimpleString)


def _asked_for_array(module: SourceModule, row: cst.Subscript) -> cst.BaseExpression | None:
    """``row.values`` or ``row.to_numpy()``, where that is all that is done with it."""
    asked = module.parent(row)
    if not isinstance(asked, cst.Attribute) or asked.value is not row:
        return None
    call = module.parent(asked)
    if asked.attr.value == "to_numpy" and isinstance(call, cst.Call) and call.func is asked and not call.args:
        return call
    return asked if asked.attr.value == "values" else None


def _is_set(module: SourceModule, function: cst.FunctionDef, array: cst.BaseExpression) -> bool:
    """Whether items of the array may be set under the name that it is bound to: they may be the frame's own."""
    above = module.parent(array)
    if not isinstance(above, cst.Assign):
        return isinstance(above, cst.AugAssign)
    names = [target.target.value for target in above.targets if isinstance(target.target, cst.Name)]
    if len(names) < len(above.targets):
        return True
    return any(_changes(module, use) for name in names for use in module.uses(name, function))


def _changes(module: SourceModule, use: cst.CSTNode) -> bool:
    above = module.parent(use)
    if isinstance(above, cst.AugAssign) and above.target is use:
        return True
    if not isinstance(above, (cst.Subscript, cst.Attribute)) or above.value is not use:
        return False
    call = module.parent(above)
    return module.context(above) is not ExpressionContext.LOAD or (
        isinstance(call, cst.Call) and call.func is above and mutates(call)
    )


def _goes_into_array(module: SourceModule, function: cst.FunctionDef, row: cst.Subscript) -> bool:
    """Whether a row is an item of a list of which only an array is made, or an array is made of it at once."""
    above = module.parent(row)
    if isinstance(above, cst.ListComp) and above.elt is row:
        return _becomes_array(module, above)
    if not isinstance(above, cst.Arg):
        return False
    call = module.parent(above)
    assert isinstance(call, cst.Call)
    if _makes_array(module, call, above):
        return True
    appended = isinstance(call.func, cst.Attribute) and call.func.attr.value == _APPEND and len(call.args) == 1
    name = dotted(call.func.value) if appended and isinstance(call.func, cst.Attribute) else ""
    return bool(name) and "." not in name and _only_becomes_array(module, function, name)


def _becomes_array(module: SourceModule, node: cst.CSTNode) -> bool:
    above = module.parent(node)
    call = module.parent(above) if isinstance(above, cst.Arg) else None
    return isinstance(above, cst.Arg) and isinstance(call, cst.Call) and _makes_array(module, call, above)


def _makes_array(module: SourceModule, call: cst.Call, argument: cst.Arg) -> bool:
    return module.name(call) in _TO_ARRAY and bool(call.args) and call.args[0] is argument


def _only_becomes_array(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """Whether a name is an empty list at first, is appended to, and an array is made of it; and nothing else."""
    becomes_array = False
    for use in module.uses(name, function):
        above = module.parent(use)
        if module.context(use) is not ExpressionContext.LOAD:
            assign = module.parent(above) if isinstance(above, cst.AssignTarget) else above
            if not isinstance(assign, (cst.Assign, cst.AnnAssign)) or not _is_empty_list(assign.value):
                return False
        elif _becomes_array(module, use):
            becomes_array = True
        elif not (isinstance(above, cst.Attribute) and above.attr.value == _APPEND) and not _is_counted(module, use):
            return False
    return becomes_array


def _is_empty_list(value: cst.BaseExpression | None) -> bool:
    return isinstance(value, cst.List) and not value.elements


def _is_counted(module: SourceModule, use: cst.CSTNode) -> bool:
    """``len(rows)``."""
    above = module.parent(use)
    call = module.parent(above) if isinstance(above, cst.Arg) else None
    return isinstance(call, cst.Call) and module.name(call) == "builtins.len"
