"""What the change keeps for all objects of a class in one place, under a key that does not tell them apart.

A dict in a class's body, or in the module, from which ``self.x[index]`` is taken by ``index``: a second dataset would
be given the samples of the first. A program that makes one only does the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from unstall.prove.lines.sources import ChangedSource, of_change
from unstall.prove.trees import Sides

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DISPLAYS = (ast.Dict, ast.DictComp)
_MAKERS = frozenset(("dict", "defaultdict", "OrderedDict", "WeakValueDictionary"))


class _Store(NamedTuple):
    """``holder[key] = value``, or what does the same."""

    holder: ast.expr
    key: ast.expr
    value: ast.expr


def first(sides: Sides, lines: Mapping[str, Sequence[int]]) -> str | None:
    """In words, the first of them; None where there is none.

    ``lines``: the changed lines of each file.
    """
    for source in of_change(sides, lines):
        known = {name for name, _ in _holders(source.before)}
        new = dict(_holders(source.after)).keys() - known
        for owner in ast.walk(source.after) if new else ():
            if isinstance(owner, ast.ClassDef):
                found = _of_class(source, owner, new)
                if found is not None:
                    return found
    return None


def _of_class(source: ChangedSource, owner: ast.ClassDef, new: set[str]) -> str | None:
    methods = [node for node in owner.body if isinstance(node, _FUNCTIONS) and node.args.args]
    own = {f"self.{name}" for method in methods for name in _set_on_self(method)}
    for method in methods:
        me = method.args.args[0].arg
        for store in _stores(method):
            name = _name_of(store.holder, me, owner.name)
            if name is None or name in own or not _in_reach(name, owner, new):
                continue
            values = _values(method)
            if _looks_at(store.value, me, values) and not _looks_at(store.key, me, values):
                words = ast.unparse(store.holder)
                return (
                    f"what {words} ({source.place(store.holder.lineno)}) keeps is found by every {owner.name}: "
                    "a second one would be given that of the first"
                )
    return None


def _holders(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(name, line) of each dict that the module has, as ``kept``, or a class, as ``Rows.kept``."""
    for statement in tree.body:
        yield from _dicts(statement, "")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                yield from _dicts(statement, f"{node.name}.")


def _dicts(node: ast.stmt, prefix: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and _is_dict(node.value):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                yield f"{prefix}{target.id}", node.lineno


def _is_dict(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return getattr(value.func, "attr", getattr(value.func, "id", "")) in _MAKERS
    return isinstance(value, _DISPLAYS)


def _stores(method: _Function) -> Iterator[_Store]:
    """All that the method puts under a key."""
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    yield _Store(target.value, target.slice, node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setdefault" and len(node.args) == 2:
            assert isinstance(node.func, ast.Attribute)
            yield _Store(node.func.value, *node.args)


def _name_of(holder: ast.expr, me: str, owner: str) -> str | None:
    """``self.kept`` of what an object or its class has, ``kept`` of a module's; None of anything else."""
    if isinstance(holder, ast.Name):
        return holder.id
    if not isinstance(holder, ast.Attribute):
        return None
    of = ast.unparse(holder.value)
    return f"self.{holder.attr}" if of in (me, "cls", owner, f"type({me})", f"{me}.__class__") else None


def _in_reach(name: str, owner: ast.ClassDef, new: set[str]) -> bool:
    """Whether it is a dict of the change's, of the class or of the module."""
    return f"{owner.name}.{name.removeprefix('self.')}" in new if name.startswith("self.") else name in new


def _set_on_self(method: _Function) -> Iterator[str]:
    """Attributes that it gives the object itself: they are no longer those of the class."""
    me = method.args.args[0].arg
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == me:
            yield node.attr


def _values(method: _Function) -> dict[str, list[ast.expr]]:
    """What each local name is made of."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            pairs = [(node.target, node.iter)]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    values.setdefault(name.id, []).append(value)
    return values


def _looks_at(expression: ast.expr, me: str, values: Mapping[str, Sequence[ast.expr]]) -> bool:
    """Whether an expression, or what the names in it are made of, has the object in it."""
    seen: set[str] = set()
    waiting = [expression]
    while waiting:
        names = {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)} - seen
        if me in names:
            return True
        seen |= names
        waiting += [value for name in names for value in values.get(name, ())]
    return False
