"""Find the functions behind a kind of work in the running program. Standard library only.

Where the recorder has wrapped one, it is the function inside that is found: its span is then recorded whatever an
experiment puts in its place.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from types import FunctionType
from typing import Any


def instances(base: type) -> list[Any]:
    """The live objects of a class and its subclasses."""
    return [thing for thing in gc.get_objects() if issubclass(type(thing), base)]


def inner(function: Any) -> Any:
    """The function inside one layer of wrapping: the recorder's, or that of torch's hooks."""
    return getattr(function, "__wrapped__", function)


def functions(found: Iterable[Any]) -> list[FunctionType]:
    """Of what was found, the functions written in Python, each once."""
    return list({id(thing): thing for thing in found if isinstance(thing, FunctionType)}.values())
