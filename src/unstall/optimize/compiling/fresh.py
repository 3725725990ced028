"""Whether a list is of a region's own making, so that nothing else changes where its items are set."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from unstall.optimize.compiling.language import is_append, is_listed
from unstall.optimize.compiling.region import Region
from unstall.optimize.source.bindings import names_of
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import root
from unstall.optimize.source.purity import is_stored

_LISTS = ("builtins.list", "builtins.sorted")


def refuse_aliases(region: Region) -> None:
    """Raise AnalysisRefused where an item is set of what may be a part of an argument, which would change with it."""
    module = region.module
    for node in region.nodes:
        depth, of = 0, node
        while isinstance(of, cst.Subscript):
            depth, of = depth + 1, of.value
        is_store = isinstance(node, cst.Subscript) and is_stored(module, node)
        if is_store and root(node) in region.stored and not _is_fresh(region, root(node), depth, set()):
            raise AnalysisRefused(f"line {module.first_line(node)} may change a part of something else")


def _is_fresh(region: Region, name: str, depth: int, visited: set[str]) -> bool:
    """Whether a name is only ever bound to new lists, with new lists in them as deep as items are set."""
    if name in visited:
        return True
    visited = {*visited, name}
    bound = list(_bound_to(region, name))
    return (
        name not in region.live_in
        and bool(bound)
        and all(value is not None and _is_new(region, value, depth, visited) for value in bound)
        and all(depth <= 1 or _is_new(region, value, depth - 1, visited) for value in _appended_to(region, name))
    )


def _is_new(region: Region, value: cst.BaseExpression, depth: int, visited: set[str]) -> bool:
    if isinstance(value, cst.Name):
        return _is_fresh(region, value.value, depth, visited)
    if _is_listed_once(region, value):
        return True
    if depth <= 1:
        is_slice = isinstance(value, cst.Subscript) and isinstance(value.slice[0].slice, cst.Slice)
        is_list = isinstance(value, cst.Call) and region.module.name(value) in _LISTS
        is_sum = isinstance(value, cst.BinaryOperation) and isinstance(value.left, (cst.List, cst.ListComp))
        return is_slice or is_list or is_sum or isinstance(value, (cst.List, cst.ListComp))
    if isinstance(value, cst.ListComp):
        return not isinstance(value.elt, cst.Name) and _is_new(region, value.elt, depth - 1, visited)
    return isinstance(value, cst.List) and all(
        not isinstance(part.value, cst.Name) and _is_new(region, part.value, depth - 1, visited)
        for part in value.elements
    )


def _is_listed_once(region: Region, value: cst.BaseExpression) -> bool:
    """Whether it is ``x.tolist()``, made once: the compiled code has one array for all such lists of ``x``."""
    if not is_listed(value):
        return False
    code = region.module.code(value)
    same = [node for node in region.nodes if is_listed(node) and region.module.code(node) == code]
    return len(same) == 1 and not any(
        isinstance(outer, (cst.For, cst.While, cst.CompFor, cst.ListComp, cst.GeneratorExp))
        for outer in region.module.ancestors(value)
        if outer in region.nodes
    )


def _bound_to(region: Region, name: str) -> Iterator[cst.BaseExpression | None]:
    """What binds a name in the region; None for what cannot be said."""
    for node in region.nodes:
        if isinstance(node, cst.For) and name in names_of(node.target):
            yield None
        if isinstance(node, cst.Assign):
            for target in node.targets:
                yield from _parts(target.target, node.value, name)


def _appended_to(region: Region, name: str) -> Iterator[cst.BaseExpression]:
    """What is appended or added to a list of this name, or of which it is not said to which list."""
    for node in region.nodes:
        if is_append(node) and root(node.func) in (name, ""):  # type: ignore[attr-defined]
            yield from (argument.value for argument in node.args)  # type: ignore[attr-defined]
        if isinstance(node, cst.AugAssign) and root(node.target) == name and isinstance(node.value, cst.List):
            yield from (element.value for element in node.value.elements)


def _parts(target: cst.BaseExpression, value: cst.BaseExpression, name: str) -> Iterator[cst.BaseExpression | None]:
    """What an assignment binds a name to."""
    if isinstance(target, cst.Name):
        if target.value == name:
            yield value
    elif isinstance(target, (cst.Tuple, cst.List)):
        if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(target.elements):
            for part, of in zip(target.elements, value.elements):
                yield from _parts(part.value, of.value, name)
        elif name in names_of(target):
            yield None
