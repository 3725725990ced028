"""Whether the source itself ends a growth: a buffer with a capacity, a history that is cut to a length."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from unstall.diagnose import source

_REMOVING = frozenset({"pop", "popleft", "popitem", "clear", "remove", "discard"})
_HEAPS = frozenset({"heappop", "heapreplace", "heappushpop"})
_LEAVING = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_BELOW, _ABOVE = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)
_SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def bound_of(tree: ast.Module, line: int, name: str) -> str:
    """The condition by which what a line makes grow ends growing.

    Args:
        tree: the module's.
        line: that makes it grow.
        name: of the variable or attribute that grows.

    Returns:
        As written; empty where the source shows none. The line runs only while ``len(name)`` is below a capacity; or
        where it is not, entries go, in the same function or in another of its class; or, as in a ring buffer, the
        other branch of a comparison overwrites entries.
    """
    around = source.around(tree, (ast.stmt,), line)
    for node, holds in _conditions(around):
        other = node.orelse if holds else node.body
        is_ring = _compares_sizes(node.test) and any(_overwrites(part, name) for part in _parts(other))
        if is_ring or _is_below(node.test, name, holds=holds):
            return ast.unparse(node.test)
    scope = next((node for node in around if isinstance(node, _SCOPES)), tree)
    for test in ast.walk(scope):
        if isinstance(test, (ast.If, ast.While)) and _may_end(test.test, name):
            leaves_first = test.lineno < line and isinstance(test.body[-1], _LEAVING) and _beside(test, around)
            if leaves_first or any(_takes(part, name) for part in _parts(test.body)):
                return ast.unparse(test.test)
    return ""


def _conditions(around: Sequence[ast.stmt]) -> Iterator[tuple[ast.If | ast.While, bool]]:
    """The statements on whose condition the line depends, the innermost first, and whether it runs where it holds."""
    for node in reversed(around):
        if isinstance(node, (ast.If, ast.While)):
            holds = any(statement in around for statement in node.body)
            if holds or any(statement in around for statement in node.orelse):
                yield node, holds


def _beside(node: ast.stmt, around: Sequence[ast.stmt]) -> bool:
    """Whether a statement stands in a block that the line is in too, so that leaving it skips the line."""
    return any(node in getattr(outer, block, ()) for outer in around for block in ("body", "orelse"))


def _is_below(test: ast.expr, name: str, *, holds: bool) -> bool:
    """Whether ``len(name)`` is surely below something where a condition holds, or where it does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_below(test.operand, name, holds=not holds)
    if isinstance(test, ast.BoolOp):
        is_sure = isinstance(test.op, ast.And) == holds
        return is_sure and any(_is_below(value, name, holds=holds) for value in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    on_left = _is_length(test.left, name)
    if on_left == _is_length(test.comparators[0], name):
        return False
    below = _BELOW if on_left == holds else _ABOVE
    return isinstance(test.ops[0], (*below, ast.NotEq if holds else ast.Eq))


def _may_end(test: ast.expr, name: str) -> bool:
    """Whether a condition asks if ``len(name)`` has reached something, whatever else it asks."""
    return any(_is_below(part, name, holds=False) for part in ast.walk(test) if isinstance(part, ast.Compare))


def _is_length(node: ast.expr, name: str) -> bool:
    """Whether it is ``len(name)``, with what may be added to it."""
    if isinstance(node, ast.BinOp):
        return _is_length(node.left, name) or _is_length(node.right, name)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id == "len" and len(node.args) == 1 and _is_named(node.args[0], name)


def _is_named(node: ast.expr, name: str) -> bool:
    """Whether it is the variable or attribute itself, or an entry of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return getattr(node, "attr", getattr(node, "id", None)) == name


def _parts(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        yield from ast.walk(statement)


def _compares_sizes(test: ast.expr) -> bool:
    """Whether a condition asks which of two is the greater: such as a count and a capacity."""
    orders = (order for part in ast.walk(test) if isinstance(part, ast.Compare) for order in part.ops)
    return any(isinstance(order, (*_BELOW, *_ABOVE)) for order in orders)


def _takes(node: ast.AST, name: str) -> bool:
    """Whether it takes entries out, or puts something else in the place of the whole."""
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in _HEAPS:
            return bool(node.args) and _is_named(node.args[0], name)
        return called in _REMOVING and isinstance(node.func, ast.Attribute) and _is_named(node.func.value, name)
    if isinstance(node, ast.Delete):
        return any(isinstance(target, ast.Subscript) and _is_named(target, name) for target in node.targets)
    if not isinstance(node, ast.Assign):
        return False
    return any(_is_named(target, name) for target in node.targets if not _is_entry(target))


def _overwrites(node: ast.AST, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return any(_is_named(target, name) for target in targets if _is_entry(target))


def _is_entry(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice)
