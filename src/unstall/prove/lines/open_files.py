"""Files that the change opens once for a dataset, and whose position its items move.

Loader workers that are forked share that position, and get each other's bytes; a program without workers shows none
of it. A file that each process opens for itself, when it first needs it, is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from unstall.prove.lines.sources import Change
from unstall.prove.lines.syntax import FUNCTIONS, Function, called, reachable

_OPENS = frozenset(("open", "TemporaryFile", "NamedTemporaryFile", "SpooledTemporaryFile", "ZipFile", "TarFile"))
_MOVES = frozenset(("seek", "read", "readline", "readlines", "readinto", "extractfile", "write"))
_GIVES_ITEMS = frozenset(("__getitem__", "__getitems__"))


def first(change: Change) -> str | None:
    """In words, the first of them; None where there is none."""
    for source in change.sources:
        known = {(owner.name, name) for owner in _datasets(source.before) for name, _ in _opened(owner)}
        for owner in _datasets(source.after):
            for name, line in _opened(owner):
                if (owner.name, name) not in known and name in _moved(owner):
                    return (
                        f"{source.place(line)} opens a file once, and items of {owner.name} move its position: "
                        "loader workers would share it"
                    )
    return None


def _datasets(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Classes whose objects give items."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not _GIVES_ITEMS.isdisjoint(_methods(node)):
            yield node


def _methods(owner: ast.ClassDef) -> dict[str, Function]:
    return {node.name: node for node in owner.body if isinstance(node, FUNCTIONS)}


def _opened(owner: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """(attribute, line) of what an object opens when it is made, in its constructor or what that calls of its own."""
    methods = _methods(owner)
    for name in _reachable("__init__", methods):
        for node in ast.walk(methods[name]):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and called(node.value) in _OPENS:
                yield from ((to.attr, node.lineno) for to in node.targets if isinstance(to, ast.Attribute))


def _moved(owner: ast.ClassDef) -> set[str]:
    """Attributes that are read from, or moved in, where an item is given."""
    methods = _methods(owner)
    moved = set()
    for name in {name for gives in _GIVES_ITEMS for name in _reachable(gives, methods)}:
        for node in ast.walk(methods[name]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
                moved.add(getattr(node.func.value, "attr", ""))
    return moved


def _reachable(name: str, methods: Mapping[str, ast.AST]) -> set[str]:
    """A method, and those of the class that it calls."""
    return reachable({name}, {each: [method] for each, method in methods.items()}, _called_in)


def _called_in(method: ast.AST) -> set[str]:
    return {called(node) for node in ast.walk(method) if isinstance(node, ast.Call)}
