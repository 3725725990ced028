"""Loops that ask a tensor for numbers one by one, ``x[i].item()``, and the same with all of them in a list before.

Each such number is an operator, an object and, on a GPU, a wait for all that was submitted; a list is one of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from unstall.optimize.source.assignment import bound_before
from unstall.optimize.source.bindings import may_change_in_place, names_of
from unstall.optimize.source.edit import Edit, edited, preceded_by, put, statement
from unstall.optimize.source.module import SourceModule, is_reference, root
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.purity import is_stored
from unstall.optimize.source.toplevel import with_runtime

Loop = cst.For | cst.While
_NUMBERS = ("builtins.int", "builtins.float")


@dataclass(frozen=True)
class ItemRead:
    """``x[i].item()`` in a loop."""

    call: cst.Call
    of: cst.BaseExpression
    """``x``: what stays the same in the loop, or the name of the loop's own rows."""
    depth: int
    """Indices until the number, those of the rows among them."""
    loop: Loop
    rows: cst.BaseExpression | None
    """What the loop goes through, if ``of`` is an item of that."""


def item_reads(module: SourceModule, part: cst.FunctionDef | cst.Module) -> Iterator[ItemRead]:
    """Those in a function that a list may serve; none at the top level of a file, whose names anybody may change."""
    if isinstance(part, cst.Module):
        return
    for node in module.inside(part):
        if isinstance(node, cst.Call) and module.enclosing(node, cst.FunctionDef, cst.Lambda) is part:
            read = _read(module, node, part)
            if read is not None:
                yield read


def at_once(module: SourceModule, reads: Sequence[ItemRead]) -> cst.Module:
    """The tree in which lists serve these. Raises NameTaken where the file's names are in the way."""
    edits: dict[cst.CSTNode, Edit] = {}
    lists: dict[cst.CSTNode, dict[tuple[str, int], str]] = {}
    taken = {node.value for node in module.all(cst.Name)}
    for read in reads:
        if read.rows is not None:
            edits[read.rows] = put(_listed(module.code(read.rows), read.depth))
            edits[read.call] = put(_item(module, read.call, module.code(read.of)))
            continue
        known = lists.setdefault(read.loop, {})
        key = module.code(read.of), read.depth
        if key not in known:
            known[key] = fresh_name(f"{root(read.of) if '.' not in key[0] else key[0].rpartition('.')[2]}_items", taken)
            taken.add(known[key])
        edits[read.call] = put(_item(module, read.call, known[key]))
    for loop, known in lists.items():
        lines = [
            statement(module.tree, f"{name} = _listed_items({code}, {depth})") for (code, depth), name in known.items()
        ]
        edits[loop] = preceded_by(lines)
    return with_runtime(edited(module.tree, edits), "listed_items")


def _listed(code: str, depth: int) -> cst.BaseExpression:
    return cst.parse_expression(f"_listed_items({code}, {depth})")


def _item(module: SourceModule, call: cst.Call, listed: str) -> cst.BaseExpression:
    """``x[i, j].item()`` as ``listed[i][j]``."""
    assert isinstance(call.func, cst.Attribute)
    indices = "".join(f"[{module.code(index)}]" for index in _indices(call.func.value)[1])
    return cst.parse_expression(f"{listed}{indices}")


def _indices(node: cst.BaseExpression) -> tuple[cst.BaseExpression, list[cst.BaseExpression]]:
    """What is indexed, and by what, the outermost axis first; what is no single item counts as indexed itself."""
    found: list[cst.BaseExpression] = []
    while isinstance(node, cst.Subscript):
        parts = [part.slice.value for part in node.slice if isinstance(part.slice, cst.Index)]
        names_nothing = any(isinstance(part, (cst.SimpleString, cst.Ellipsis, cst.FormattedString)) for part in parts)
        if len(parts) < len(node.slice) or names_nothing:
            break
        found = [*parts, *found]
        node = node.value
    return node, found


def _read(module: SourceModule, call: cst.Call, function: cst.FunctionDef) -> ItemRead | None:
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "item" or call.args:
        return None
    of, indices = _indices(call.func.value)
    if not is_reference(of):
        return None
    loops = [node for node in module.ancestors(call) if isinstance(node, (cst.For, cst.While))]
    loops = [loop for loop in loops if function in module.ancestors(loop)]
    for loop in loops:
        rows = _rows(loop, of.value) if isinstance(of, cst.Name) and isinstance(loop, cst.For) else None
        if rows is not None and isinstance(of, cst.Name) and isinstance(loop, cst.For):
            served = _only_numbers(module, loop, of.value, len(indices)) and _stays(module, loop, rows)
            return ItemRead(call, of, len(indices) + 1, loop, rows) if served else None
    steady = None
    for loop in loops:
        if not _stays(module, loop, of):
            break
        steady = loop
    is_known = steady is not None and root(of) in bound_before(module, function, steady)
    return ItemRead(call, of, len(indices), steady, None) if steady is not None and indices and is_known else None


def _rows(loop: cst.For, name: str) -> cst.BaseExpression | None:
    """What a loop goes through to bind the name to each of its items; None where it is bound otherwise, or not."""
    target, values = loop.target, loop.iter
    if isinstance(target, cst.Name):
        return values if target.value == name else None
    if not isinstance(target, cst.Tuple) or not isinstance(values, cst.Call) or not isinstance(values.func, cst.Name):
        return None
    bound = [element.value for element in target.elements]
    given = [argument.value for argument in values.args]
    if values.func.value == "enumerate" and given:
        given = [values, given[0]]
    if values.func.value not in ("enumerate", "zip") or len(given) != len(bound):
        return None
    found = [of for part, of in zip(bound, given) if isinstance(part, cst.Name) and part.value == name]
    return found[0] if len(found) == 1 and found[0] is not values else None


def _only_numbers(module: SourceModule, loop: cst.For, name: str, depth: int) -> bool:
    """Whether all that a loop does with its row is ask for numbers of it."""
    for use in module.uses(name, loop.body):
        node: cst.CSTNode = use
        while isinstance(above := module.parent(node), cst.Subscript) and above.value is node:
            node = above
        above = module.parent(node)
        call = module.parent(above) if above is not None else None
        asks = isinstance(above, cst.Attribute) and above.attr.value == "item" and isinstance(call, cst.Call)
        turns = isinstance(above, cst.Arg) and isinstance(call, cst.Call) and module.name(call) in _NUMBERS
        if not (asks or turns) or not isinstance(node, cst.BaseExpression) or len(_indices(node)[1]) != depth:
            return False
    return True


def _stays(module: SourceModule, loop: Loop, of: cst.BaseExpression) -> bool:
    """Whether a loop neither binds nor changes what numbers are asked of."""
    name = root(of)
    if not name or (isinstance(loop, cst.For) and name in names_of(loop.target)):
        return False
    for node in module.inside(loop.body):
        if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) and root(node) == name:
            reaches = isinstance(of, cst.Name) or module.code(node).startswith(module.code(of))
            if (is_stored(module, node) or may_change_in_place(module, node)) and reaches:
                return False
    return True
