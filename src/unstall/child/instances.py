"""The attributes of an instance, without asking for its ``__dict__``.

From version 3.11 on, Python keeps attributes in the instance itself until somebody asks for the ``__dict__``. From then
on every access to them is slower, for as long as the instance lives: a loop of Python over attributes takes about three
times as long. So the attributes are read one by one, by the names that the methods of its class store. A class is asked
for nothing that would run code of the program's.
"""

from __future__ import annotations

import gc
import opcode
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from unstall.child.recording import native

_HELD_IN_INSTANCES = sys.version_info >= (3, 11)
_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT: instances of the class may do without a dictionary
_STORE, _EXTENDED = opcode.opmap["STORE_ATTR"], opcode.EXTENDED_ARG
_NOTHING: Any = object()

_stored: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def attributes(value: Any) -> dict[str, Any]:
    """Name and value of what an instance holds; empty where it has none. Not to be changed."""
    if not (_HELD_IN_INSTANCES and type(value).__flags__ & _MANAGED_DICT):
        return _dictionary(value)
    referents = gc.get_referents(value)
    if any(type(held) is dict and _is_own(value, held) for held in referents):
        return _dictionary(value)
    values = {name: held for name in names_of(type(value)) if (held := _read(value, name)) is not _NOTHING}
    known = {id(held) for held in (type(value), *values.values())}
    if any(gc.is_tracked(held) and id(held) not in known for held in referents):
        return _dictionary(value)  # set from outside of its class: there is no other way to its name
    return values


def names_of(kind: type) -> tuple[str, ...]:
    """The attributes that the methods of a class and of its bases store."""
    names = _stored.get(kind)
    if names is None:
        stored = dict.fromkeys(name for code in _codes(kind) for name in _stores(code))
        names = _stored[kind] = tuple(name for name in stored if not _is_answered_by(kind, name))
    return names


def _dictionary(value: Any) -> dict[str, Any]:
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if isinstance(held, dict) else {}


def _read(value: Any, name: str) -> Any:
    try:
        held = object.__getattribute__(value, name)
    except AttributeError:
        return _NOTHING
    return _NOTHING if held is _of_class(type(value), name) else held


def _is_own(value: Any, held: dict[Any, Any]) -> bool:
    """Whether a dictionary is the instance's own, which it has already then."""
    stored = [name for name in held if type(name) is str and not _is_answered_by(type(value), name)]
    return bool(stored) and all(_read(value, name) is held[name] for name in stored)


def _of_class(kind: type, name: str) -> Any:
    for base in type.__getattribute__(kind, "__mro__"):
        own = type.__getattribute__(base, "__dict__")
        if name in own:
            return own[name]
    return _NOTHING


def _is_answered_by(kind: type, name: str) -> bool:
    """Whether a descriptor of the class answers for an attribute, which may be the program's code."""
    held = _of_class(kind, name)
    return held is not _NOTHING and _of_class(type(held), "__get__") is not _NOTHING


def _codes(kind: type) -> Iterator[CodeType]:
    for base in type.__getattribute__(kind, "__mro__"):
        for member in list(type.__getattribute__(base, "__dict__").values()):
            for function in _functions(member):
                yield from _with_inner(function.__code__)


def _functions(member: Any) -> Iterator[FunctionType]:
    if type(member) in (staticmethod, classmethod):
        member = member.__func__
    parts = (member.fget, member.fset, member.fdel) if type(member) is property else (member,)
    for part in parts:
        function = native.inner(part)
        for _ in range(8):  # decorators
            if type(function) is not FunctionType:
                break
            yield function
            function = function.__dict__.get("__wrapped__")


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _with_inner(constant)


def _stores(code: CodeType) -> Iterator[str]:
    """The names of a function's ``STORE_ATTR``."""
    words, extended = code.co_code, 0
    for at in range(0, len(words), 2):
        operation, argument = words[at], words[at + 1] | extended
        extended = argument << 8 if operation == _EXTENDED else 0
        if operation == _STORE:
            yield code.co_names[argument]
