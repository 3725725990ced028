"""Find the functions behind a kind of work in the running program. Standard library only.

Where the recorder has wrapped one, it is the function inside that is found: its span is then recorded whatever an
experiment puts in its place.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from unstall.child.recording import native


def instances(base: type) -> list[Any]:
    """The live objects of a class and its subclasses."""
    return [candidate for candidate in gc.get_objects() if issubclass(type(candidate), base)]


def inner(function: Any) -> Any:
    """The function inside one layer of wrapping: the recorder's, or that of torch's hooks."""
    unrecorded = native.inner(function)
    return unrecorded if unrecorded is not function else getattr(function, "__wrapped__", function)


def functions(candidates: Iterable[Any]) -> list[FunctionType]:
    """Of the candidates, the functions written in Python, each once."""
    return list({id(function): function for function in candidates if type(function) is FunctionType}.values())


def members(module: str, *names: str, owner: str | None = None) -> list[FunctionType]:
    """The functions of these names in a module, or in a class of it, if the module is imported."""
    holder = sys.modules.get(module)
    if owner is not None:
        holder = getattr(holder, owner, None)
    return functions(inner(getattr(holder, name, None)) for name in names)
