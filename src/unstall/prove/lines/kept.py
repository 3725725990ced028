"""What the change keeps in a dict, under a key that does not tell apart what it depends on.

A dict in a class's body, or in the module, from which ``self.x[index]`` is taken by ``index``: a second dataset would
be given the samples of the first. Targets of boxes and labels that are kept by the boxes alone: the same boxes with
other labels would be given the earlier ones. Or what is kept by an address, which another object has later. A program
in which none of these comes up does the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from unstall.prove.lines.sources import Change, ChangedSource
from unstall.prove.lines.syntax import FUNCTIONS, Function, called

_DISPLAYS = (ast.Dict, ast.DictComp)
_MAKERS = frozenset(("dict", "defaultdict", "OrderedDict", "WeakValueDictionary"))


_WHOLE = ""
"""In place of an attribute: the object itself."""

_Values = dict[str, list[ast.expr]]
"""What each local name is made of."""


class _Store(NamedTuple):
    """``holder[key] = value``, or what does the same."""

    holder: ast.expr
    key: ast.expr
    value: ast.expr


class _Place(NamedTuple):
    """A function of the file, and the class whose method it is."""

    function: Function
    owner: ast.ClassDef | None

    @property
    def arguments(self) -> list[str]:
        """Their names, the object itself left out."""
        given = self.function.args
        names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        return names[1:] if self.owner is not None else names

    @property
    def me(self) -> str:
        """What a method calls its object; nothing in a function of the module."""
        given = self.function.args
        first = [*given.posonlyargs, *given.args][:1]
        return first[0].arg if self.owner is not None and first else ""


def first(change: Change) -> str | None:
    """In words, the first of them; None where there is none."""
    for source in change.sources:
        new = {*_holders(source.after)} - {*_holders(source.before)}
        for place in _places(source.after) if new else ():
            found = _in_function(source, place, new)
            if found is not None:
                return found
    return None


def _in_function(source: ChangedSource, place: _Place, new: set[str]) -> str | None:
    values = _values(place.function)
    recalled = {*_recalled(place.function, values)}
    for store in _stores(place.function):
        name = _name_of(store.holder, place)
        if name not in new:
            continue
        words = f"what {ast.unparse(store.holder)} ({source.place(store.holder.lineno)}) keeps"
        needs, tells = (_names_behind(each, values) for each in (store.value, store.key))
        is_shared = place.owner is not None and not name.startswith(f"{place.owner.name}.self.")
        if place.owner is not None and is_shared and place.me in needs and _untold(store, place, values):
            return f"{words} is found by every {place.owner.name}: a second one would be given that of the first"
        if address := _address(store, values):
            return f"{words} is found by {address}, an address, which is another object's once this one is gone"
        if ast.unparse(store.holder) in recalled:
            for argument in place.arguments:
                if argument in needs - tells:
                    return f"{words} depends on {argument}, which its key does not tell: with another it is the same"
    return None


def _untold(store: _Store, place: _Place, values: _Values) -> bool:
    """Whether what is kept comes of an attribute of the object that its key leaves out."""
    needs, tells = (_attributes([*_behind(each, values)], place) for each in (store.value, store.key))
    return _WHOLE not in tells and bool(needs - tells)


def _attributes(expressions: Sequence[ast.AST], place: _Place) -> set[str]:
    """Attributes of the object that these read, also in its own methods; and ``_WHOLE`` where it is handed on itself.

    Constants of the class are the same for all objects.
    """
    assert place.owner is not None
    methods = {each.name: each for each in place.owner.body if isinstance(each, FUNCTIONS)}
    assigned = (target for each in place.owner.body if isinstance(each, ast.Assign) for target in each.targets)
    same_for_all = {*methods, *(target.id for target in assigned if isinstance(target, ast.Name))}
    found: set[str] = set()
    waiting = [*expressions]
    while waiting:
        nodes = [*ast.walk(waiting.pop())]
        of_object = [node for node in nodes if isinstance(node, ast.Attribute) and _is(node.value, place.me)]
        waiting += [methods.pop(node.attr) for node in of_object if node.attr in methods]
        found |= {node.attr for node in of_object}
        if sum(_is(node, place.me) for node in nodes) > len(of_object):
            found.add(_WHOLE)
    return found - same_for_all


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _address(store: _Store, values: _Values) -> str:
    """``id(x)`` in a key where ``x`` is not kept with it, which would keep its address its own; else nothing."""
    with_it = [ast.unparse(each) for each in getattr(store.value, "elts", ())]
    for each in _behind(store.key, values):
        for node in ast.walk(each):
            taken = node.args if isinstance(node, ast.Call) and called(node) == "id" else []
            if taken and ast.unparse(taken[0]) not in with_it:
                return ast.unparse(node)
    return ""


def _places(tree: ast.Module) -> Iterator[_Place]:
    """The functions of the module, and the methods of its classes."""
    for node in ast.walk(tree):
        for below in ast.iter_child_nodes(node) if isinstance(node, (ast.Module, ast.ClassDef)) else ():
            if isinstance(below, FUNCTIONS):
                yield _Place(below, node if isinstance(node, ast.ClassDef) else None)


def _holders(tree: ast.Module) -> Iterator[str]:
    """Dicts that outlive a call: ``kept`` of the module, ``Rows.kept`` of a class, ``Rows.self.kept`` of objects."""
    for statement in tree.body:
        yield from _dicts(statement)
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            for statement in owner.body:
                yield from (f"{owner.name}.{name}" for name in _dicts(statement))
            for name in _of_objects(owner):
                yield f"{owner.name}.self.{name}"


def _of_objects(owner: ast.ClassDef) -> Iterator[str]:
    """Attributes to which its methods assign a dict."""
    for method in owner.body:
        for node in ast.walk(method) if isinstance(method, FUNCTIONS) else ():
            yield from (target.attr for target in _given_dicts(node) if isinstance(target, ast.Attribute))


def _dicts(node: ast.stmt) -> Iterator[str]:
    yield from (target.id for target in _given_dicts(node) if isinstance(target, ast.Name))


def _given_dicts(node: ast.AST) -> Sequence[ast.expr]:
    """What a statement assigns a dict to."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None or not _is_dict(node.value):
        return ()
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _is_dict(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return called(value) in _MAKERS
    return isinstance(value, _DISPLAYS)


def _name_of(holder: ast.expr, place: _Place) -> str:
    """As :func:`_holders` calls it; empty for what is none."""
    if isinstance(holder, ast.Name):
        return holder.id
    if not isinstance(holder, ast.Attribute) or place.owner is None:
        return ""
    of, owner = ast.unparse(holder.value), place.owner
    if of == place.me:
        is_own = holder.attr in _of_objects(owner)  # no longer the class's
        return f"{owner.name}.self.{holder.attr}" if is_own else f"{owner.name}.{holder.attr}"
    is_class = of in ("cls", owner.name, f"type({place.me})", f"{place.me}.__class__")
    return f"{owner.name}.{holder.attr}" if is_class else ""


def _stores(function: Function) -> Iterator[_Store]:
    """All that the function puts under a key."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    yield _Store(target.value, target.slice, node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_default = node.func.attr == "setdefault" and len(node.args) == 2
            yield from [_Store(node.func.value, *node.args)] if is_default else []


def _recalled(function: Function, values: _Values) -> Iterator[str]:
    """What the function gives back something of: what it puts there is kept for later calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            for expression in _behind(node.value, values):
                for below in ast.walk(expression):
                    if isinstance(below, ast.Subscript):
                        yield ast.unparse(below.value)
                    elif isinstance(below, ast.Call) and isinstance(below.func, ast.Attribute):
                        yield ast.unparse(below.func.value)


def _values(function: Function) -> _Values:
    """What each local name is made of, and what is put into it."""
    values: _Values = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            pairs = [(target, [node.value]) for target in node.targets]
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            pairs = [(node.target, [node.iter])]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
            pairs = [(node.target, [node.value])]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function_of = node.value.func
            pairs = [(function_of.value, node.value.args)] if isinstance(function_of, ast.Attribute) else []
        else:
            continue
        for target, made_of in pairs:
            for name in _changed_by(target):
                values.setdefault(name, []).extend(made_of)
    return values


def _changed_by(target: ast.expr) -> Iterator[str]:
    """Names that an assignment to this makes, or puts something into."""
    while isinstance(target, (ast.Subscript, ast.Starred)):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _changed_by(each)


def _names_behind(expression: ast.expr, values: _Values) -> set[str]:
    """All names in an expression, and in what those are made of."""
    return {name for each in _behind(expression, values) for name in _names(each)}


def _behind(expression: ast.expr, values: _Values) -> Iterator[ast.expr]:
    """An expression, and what the names in it are made of."""
    seen: set[str] = set()
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        yield each
        names = _names(each) - seen
        seen |= names
        waiting += [value for name in names for value in values.get(name, ())]


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
