"""Loops that take rows of pandas frames one by one, and the same loops with the columns looked up once.

A row that a loop takes is an object of pandas, which takes longer to make than most that is done with it. Where only
items and attributes of it are asked, these can be taken from the columns, if the loop leaves the frame as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.bindings import mutates
from unstall.optimize.source.edit import Edit, edited, preceded_by, put, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted, is_reference, root
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.toplevel import with_runtime

Loop = cst.For | cst.While
_INDEXER = "iloc"


@dataclass(frozen=True)
class RowAccess:
    """A place where a loop takes a row, a cell or several rows of a frame."""

    node: cst.BaseExpression
    """What is replaced: ``frame.iloc[i]``, ``frame[a:b]``, ``frame.iterrows()``."""
    frame: cst.BaseExpression
    way: str
    """``rows``, ``plain``, ``cell`` or ``each``."""
    index: str = ""
    """Source of the index."""
    loop: Loop | None = None
    """The loop before which the frame's columns are looked up; None for ``each``, which does so itself."""
    name: str = ""
    """The name that the row is bound to; empty for a cell."""


def row_accesses(module: SourceModule, function: cst.FunctionDef) -> Iterator[RowAccess]:
    """The places in a function's loops where rows may be taken from columns."""
    for node in module.inside(function.body):
        try:
            access = _access(module, function, node)
        except AnalysisRefused:
            continue
        if access is not None:
            yield access


def by_columns(module: SourceModule, function: cst.FunctionDef, accesses: list[RowAccess]) -> cst.Module:
    """The tree with these rows taken from columns. Raises NameTaken where the file's names are in the way."""
    edits: dict[cst.CSTNode, Edit] = {}
    names: dict[tuple[Loop, str], str] = {}
    for access in accesses:
        frame = module.code(access.frame)
        if access.way == "each":
            edits[access.node] = put(cst.parse_expression(f"_each_row({frame})"))
        else:
            assert access.loop is not None
            name = names.setdefault((access.loop, frame), _new_name(module, access.frame, names))
            edits[access.node] = put(cst.parse_expression(f"{name}.{access.way}({access.index})"))
        for use, column in _values_of(module, function, access.name):
            edits[use] = put(cst.parse_expression(f"_values({access.name}, {column})"))
    for loop in {loop for loop, _ in names}:
        lines = [f"{name} = _Frame({frame})" for (of, frame), name in names.items() if of is loop]
        edits[loop] = preceded_by([statement(module.tree, line) for line in lines])
    tree = edited(module.tree, edits)
    for runtime in sorted({"each_row" if access.way == "each" else "frame_rows" for access in accesses}):
        tree = with_runtime(tree, runtime)
    return tree


def _access(module: SourceModule, function: cst.FunctionDef, node: cst.CSTNode) -> RowAccess | None:
    if isinstance(node, cst.For):
        return _each(module, function, node)
    if not isinstance(node, cst.Subscript) or module.context(node) is not ExpressionContext.LOAD:
        return None
    index = _single(module, node)
    by_place = isinstance(node.value, cst.Attribute) and node.value.attr.value == _INDEXER
    frame = node.value.value if isinstance(node.value, cst.Attribute) and by_place else node.value
    if index is None or module.enclosing(node, cst.FunctionDef, cst.Lambda) is not function:
        return None
    name = _bound_to(module, node)
    if name is not None and dotted(frame) and _only_asked(module, function, name):
        if by_place:
            return RowAccess(node, frame, "rows", index, _loop_around(module, function, node, frame), name)
        if any(_values_of(module, function, name)):  # else it may be a row of anything
            return RowAccess(node, frame, "plain", index, _loop_around(module, function, node, frame), name)
    is_row = name is not None and _is_asked(module, function, name)
    if (
        by_place
        and not is_row
        and not isinstance(node.slice[0].slice, cst.Slice)
        and is_reference(frame, cst.SimpleString)
    ):
        return RowAccess(node, frame, "cell", index, _loop_around(module, function, node, frame))
    return None


def _each(module: SourceModule, function: cst.FunctionDef, loop: cst.For) -> RowAccess | None:
    """``for label, row in frame.iterrows()``."""
    call, target = loop.iter, loop.target
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return None
    if call.func.attr.value != "iterrows" or not isinstance(target, cst.Tuple) or len(target.elements) != 2:
        return None
    row = target.elements[1].value
    if not isinstance(row, cst.Name) or not _only_asked(module, function, row.value):
        return None
    return RowAccess(call, call.func.value, "each", name=row.value)


def _single(module: SourceModule, node: cst.Subscript) -> str | None:
    """Source of the one index, a slice as a call."""
    if len(node.slice) != 1:
        return None
    element = node.slice[0].slice
    if isinstance(element, cst.Slice):
        ends = [module.code(end) if end is not None else "None" for end in (element.lower, element.upper, element.step)]
        return f"slice({', '.join(ends)})"
    if not isinstance(element, cst.Index) or isinstance(element.value, (cst.Tuple, cst.List, cst.SimpleString)):
        return None
    return module.code(element.value)


def _bound_to(module: SourceModule, node: cst.BaseExpression) -> str | None:
    """The name that a statement binds to just this."""
    above = module.parent(node)
    if not isinstance(above, cst.Assign) or above.value is not node or len(above.targets) != 1:
        return None
    target = above.targets[0].target
    return target.value if isinstance(target, cst.Name) else None


def _only_asked(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """Whether a name is bound once, and otherwise only items and attributes of it are read."""
    bound = 0
    for use in module.uses(name, function):
        above = module.parent(use)
        if module.context(use) is not ExpressionContext.LOAD:
            bound += 1
        elif (
            not isinstance(above, (cst.Subscript, cst.Attribute))
            or above.value is not use
            or module.context(above) is not ExpressionContext.LOAD
            or _mutates(module, above)
        ):
            return False
    return bound == 1


def _is_asked(module: SourceModule, function: cst.FunctionDef, name: str) -> bool:
    """Whether an item or an attribute of it is read or set anywhere: it is no number."""
    above = [(use, module.parent(use)) for use in module.uses(name, function)]
    return any(isinstance(node, (cst.Subscript, cst.Attribute)) and node.value is use for use, node in above)


def _mutates(module: SourceModule, node: cst.CSTNode) -> bool:
    """Whether what is called here changes what it is called of."""
    call = module.parent(node)
    return isinstance(call, cst.Call) and call.func is node and mutates(call)


def _values_of(module: SourceModule, function: cst.FunctionDef, name: str) -> Iterator[tuple[cst.BaseExpression, str]]:
    """(``name[column].values``, source of the column)."""
    for use in module.uses(name, function) if name else ():
        item = module.parent(use)
        above = module.parent(item) if item is not None else None
        if not isinstance(item, cst.Subscript) or not isinstance(above, cst.Attribute) or len(item.slice) != 1:
            continue
        element, call = item.slice[0].slice, module.parent(above)
        if not isinstance(element, cst.Index):
            continue
        if isinstance(call, cst.Call) and call.func is above:
            if above.attr.value == "to_numpy" and not call.args:
                yield call, module.code(element.value)
        elif above.attr.value == "values":
            yield above, module.code(element.value)


def _loop_around(module: SourceModule, function: cst.FunctionDef, node: cst.CSTNode, frame: cst.BaseExpression) -> Loop:
    """The outermost loop of the function in which a frame stays as it is. Raises AnalysisRefused without one."""
    outermost: Loop | None = None
    for ancestor in module.ancestors(node):
        if ancestor is function:
            break
        if isinstance(ancestor, (cst.For, cst.While)):
            if _is_changed(module, ancestor, frame):
                break
            outermost = ancestor
    if outermost is None:
        raise AnalysisRefused(f"line {module.first_line(node)} is in no loop that leaves the frame as it is")
    return outermost


def _is_changed(module: SourceModule, loop: Loop, frame: cst.BaseExpression) -> bool:
    """Whether a loop, or a function of the file that it calls, may bind the frame anew or change what it holds."""
    spelled, first = module.code(frame), root(frame)
    called = {dotted(node.func).rpartition(".")[2] for node in module.inside(loop) if isinstance(node, cst.Call)}
    functions = [function for function in module.all(cst.FunctionDef) if function.name.value in called]
    last = _last_name(frame)
    for part in (loop, *functions):
        for node in module.inside(part):
            if not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
                continue
            is_set = module.context(node) in (ExpressionContext.STORE, ExpressionContext.DEL)
            is_changed = is_set or _mutates(module, node)
            if part is loop and is_changed and (root(node) == first and _touches(module.code(node), spelled)):
                return True
            if part is not loop and is_changed and last in module.code(node).replace("[", ".").split("."):
                return True
    return False


def _touches(changed: str, frame: str) -> bool:
    """Whether setting one may change the other: it is the frame, what holds it, or a part of it."""
    return frame.startswith(changed) or changed.startswith(frame)


def _last_name(frame: cst.BaseExpression) -> str:
    """Of ``self.data.frame``, or of a column of it: ``frame``."""
    return dotted(frame.value if isinstance(frame, cst.Subscript) else frame).rpartition(".")[2]


def _new_name(module: SourceModule, frame: cst.BaseExpression, names: dict[tuple[Loop, str], str]) -> str:
    """A name for the frame's columns that the file does not use."""
    used = {node.value for node in module.all(cst.Name)} | set(names.values())
    return fresh_name(f"{_last_name(frame).strip('_')}_rows", used)
