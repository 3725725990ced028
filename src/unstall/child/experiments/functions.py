"""Find the user's functions in the running process, and put other code in their place. Standard library only.

The code object of the function itself is exchanged (``function.__code__``), so that everybody who holds the function
sees it: methods, closures, decorators, partials, lists of callbacks. The recorder's own wrappers stay outside of it.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import warnings
from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.child.recording import native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    StandIn = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    """Called as ``stand_in(original, args, kwargs)`` in the place of ``original(*args, **kwargs)``."""

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
TRAMPOLINE = 1
"""Depth of its frame, as a stand-in sees it; that of the call site is the one before it."""
_PLACEHOLDER = "unstall: what stands in for the function"


class NotFound(Exception):
    """No function of that name is alive in this process."""


class Replacement:
    """A function with a stand-in, put in its place by ``on``."""

    def __init__(self, function: FunctionType, stand_in: StandIn):
        self.function = function
        self.code = function.__code__
        self.original = FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.original.__kwdefaults__ = function.__kwdefaults__
        self.original.__qualname__ = function.__qualname__
        # A partial has no frame of its own, and costs less than a function: a stub must be as good as free.
        self.trampoline = _trampoline(self.code, functools.partial(stand_in, self.original))

    def on(self) -> None:
        self.function.__code__ = self.trampoline

    def off(self) -> None:
        self.function.__code__ = self.code


def find(name: str, file: str | None = None) -> list[FunctionType]:
    """The live functions of a qualified name; NotFound when there is none.

    ``name`` is a qualified name within its module (``Photos.decode``) or with the module in front
    (``mypkg.data.Photos.decode``); a nested function is named with or without ``<locals>``. ``file`` narrows it
    to functions written in that file. Functions of the user's come before a library's of the same name.
    """
    qualified = strip_locals(name)
    last = qualified.rpartition(".")[2]
    matches: dict[int, FunctionType] = {}
    for function in _functions(qualified):
        code = function.__code__
        if (code.co_name != last and function.__name__ != last) or (file is not None and code.co_filename != file):
            continue
        qualname = strip_locals(getattr(code, "co_qualname", function.__qualname__))
        if qualified == qualname or _in_module(qualified, qualname, function.__module__ or ""):
            matches[id(function)] = function
    if not matches:
        raise NotFound(f"no function {name} is alive in the program")
    own = [function for function in matches.values() if not _is_library(function.__code__.co_filename)]
    return own or list(matches.values())


def strip_locals(name: str) -> str:
    """A qualified name without the marks of nesting."""
    return name.replace(".<locals>", "")


def why_not(function: FunctionType) -> str | None:
    """Why calls of this function cannot be answered from a record, if so."""
    flags = function.__code__.co_flags
    if flags & inspect.CO_GENERATOR:
        return "it is a generator: its values are asked for one by one"
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return "it is a coroutine"
    return None


def _is_library(file: str) -> bool:
    """Whether a file is of an installed package or the standard library."""
    return f"{os.sep}site-packages{os.sep}" in file or file.startswith((_STANDARD_LIBRARY, "<"))


def _in_module(name: str, qualname: str, module: str) -> bool:
    """Whether the name is a qualified name with its module, or the end of its module's, in front."""
    if not name.endswith(f".{qualname}"):
        return False
    prefix = name.removesuffix(f".{qualname}")
    return module == prefix or module.endswith(f".{prefix}")


def _functions(name: str) -> Iterator[FunctionType]:
    for candidate in gc.get_objects():
        if type(candidate) is FunctionType:
            yield candidate
    # What the program froze (gc.freeze) is not listed: look by name as well.
    parts = name.split(".")
    for module in [*sys.modules.values()]:
        owner: Any = getattr(module, "__dict__", {}).get(parts[0])
        for part in parts[1:]:
            owner = getattr(owner, "__dict__", {}).get(part)
        owner = native.inner(owner)
        owner = inspect.unwrap(owner) if callable(owner) and hasattr(owner, "__wrapped__") else owner
        if type(owner) is FunctionType:
            yield owner


def _trampoline(code: CodeType, call: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> CodeType:
    """Code that hands its arguments to ``call``; with the free variables of ``code``, which it must have to fit in.

    Its place in the sources is that of the original, for tracebacks and samplers.
    """
    free = code.co_freevars
    source = (
        f"def outer({', '.join(free)}):\n"
        f"    def stub(*args, **kwargs):\n"
        f"        if 0: ({''.join(f'{name}, ' for name in free)})\n"
        f"        return {_PLACEHOLDER!r}(args, kwargs)\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        module = compile(source, code.co_filename, "exec")
    outer = next(const for const in module.co_consts if hasattr(const, "co_code"))
    stub: CodeType = next(const for const in outer.co_consts if hasattr(const, "co_code"))
    changes: dict[str, Any] = {
        "co_consts": tuple(call if const == _PLACEHOLDER else const for const in stub.co_consts),
        "co_name": code.co_name,
        "co_firstlineno": code.co_firstlineno,
    }
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = code.co_qualname
    assert stub.co_freevars == tuple(sorted(free)) == free
    return stub.replace(**changes)
