"""Which functions a sample goes through: one look with the interpreter's profile hook, their arguments kept to replay.

A stage is a function of the user's, a member of a list called ``transforms`` (Compose of torchvision, albumentations
or the user's own), or a library's function that one of the user's calls directly. Standard library only.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from unstall.child import reading
from unstall.child.data import limits
from unstall.child.data.replaying import Stage, Unrepeatable, bytes_of, call_of
from unstall.child.user_files import is_program_file

_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
_READS = frozenset(
    ("open", "read", "readinto", "readline", "readlines", "recv", "recv_into", "connect", "sendall", "pread", "stat",
     "fetchone", "fetchall", "execute", "sleep", "select", "poll")
)  # fmt: skip
"""Built-in functions that wait for a disk, a network or the clock."""


Key = tuple[Any, ...]


class Tracer:
    """Use :meth:`watch` around a fetch; ``elements``: members of the lists of transforms, by their identity."""

    def __init__(self, elements: dict[int, Any]):
        self.elements = elements
        self.by_code = {getattr(member, "__code__", None): member for member in elements.values()}
        self.stages: dict[Key, Stage] = {}
        self.keep: set[Key] = set()
        """The stages whose arguments are kept."""
        self._stack: list[tuple[Any, float]] = []
        """For every frame and C call entered, the stage's key or None, and when."""
        self._open: list[Key] = []
        self._user: dict[CodeType, bool] = {}
        self._codes: list[CodeType | None] = []

    def watch(self, function: Callable[..., Any], argument: Any) -> Any:
        """Call the function with the hook in place."""
        self._stack, self._open, self._codes = [], [], []
        previous = sys.getprofile()
        sys.setprofile(self._event)
        try:
            return function(argument)
        finally:
            sys.setprofile(previous)

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self._enter(self._stage_of(frame), frame.f_code)
        elif event == "c_call":
            called = getattr(arg, "__name__", "?")
            direct = bool(self._codes) and self._is_user(self._codes[-1])
            self._enter(self._built_in(arg, called) if direct else None, None, reads=called in _READS)
        elif self._stack:  # a return, from what was entered while the hook was in place
            self._leave()

    def _enter(self, key: Key | None, code: CodeType | None, *, reads: bool = False) -> None:
        if key is not None:
            self._open.append(key)
        self._codes.append(code)
        self._stack.append((("reads", key) if reads else key, time.perf_counter() if reads else time.thread_time()))

    def _leave(self) -> None:
        key, began = self._stack.pop()
        self._codes.pop()
        if isinstance(key, tuple) and key and key[0] == "reads":
            took = time.perf_counter() - began
            for above in self._open:
                self.stages[above].reads_s += took
            key = key[1]
        else:
            took = time.thread_time() - began
        if key is not None:
            self._open.pop()
            stage = self.stages[key]
            stage.calls += 1
            stage.traced_s += took

    def _is_user(self, code: CodeType | None) -> bool:
        if code is None:
            return False
        is_user = self._user.get(code)
        if is_user is None:
            is_user = self._user[code] = is_program_file(code.co_filename)
        return is_user

    def _stage_of(self, frame: FrameType) -> Key | None:
        code = frame.f_code
        if len(self._open) >= limits.DEEPEST or code.co_name in _COMPREHENSIONS:
            return None
        owner = self._element(frame)
        above = self._codes[-1] if self._codes else None
        if owner is None and not self._is_user(code) and not self._is_user(above):
            return None
        if owner is not None and self._open and self._open[-1][-1] == id(owner):
            return None  # what an element's own call is made of
        if any(key[:3] == (code.co_filename, code.co_firstlineno, code.co_name) for key in self._open):
            return None  # it calls itself
        name = _qualname(frame) if owner is None or code in self.by_code else type(owner).__qualname__
        key = (code.co_filename, code.co_firstlineno, code.co_name, id(owner) if owner is not None else 0)
        stage = self._stage(key, name, code.co_filename, code.co_firstlineno)
        stage.element = owner is not None
        if key in self.keep and len(stage.calls_kept) < limits.MOST_CALLS and stage.bytes_kept < limits.MOST_BYTES:
            self._keep(stage, frame, owner)
        return key

    def _element(self, frame: FrameType) -> Any:
        code = frame.f_code
        if code in self.by_code:
            return self.by_code[code]
        if not code.co_argcount:
            return None
        return self.elements.get(id(frame.f_locals.get(code.co_varnames[0]))) if code.co_varnames else None

    def _built_in(self, function: Any, called: str) -> Key | None:
        if len(self._open) >= limits.DEEPEST:
            return None
        module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__name__
        if module in ("builtins", "dict", "list", "tuple", "str", "set", "time", "NoneType") and called not in _READS:
            return None
        key = ("built-in", module, called, 0)
        self._stage(key, f"{module}.{called}", "", 0).why_not = "written in C: timed where it is called"
        return key

    def _stage(self, key: Key, name: str, file: str, line: int) -> Stage:
        stage = self.stages.get(key)
        if stage is None:
            stage = self.stages[key] = Stage(name, file, line, len(self._open), len(self.stages))
        return stage

    def _keep(self, stage: Stage, frame: FrameType, owner: Any) -> None:
        try:
            call = call_of(frame, owner)
            stage.calls_kept.append(call)
            stage.bytes_kept += bytes_of(call.args) + bytes_of(call.kwargs)
        except Unrepeatable as error:
            stage.why_not = str(error)


def elements_of(dataset: Any) -> dict[int, Any]:
    """The members of every list called ``transforms`` that a dataset holds, itself or in what it wraps."""
    members_by_id: dict[int, Any] = {}
    visited: set[int] = set()
    todo = [(dataset, 0)]
    while todo:
        holder, depth = todo.pop()
        if id(holder) in visited or depth > 5 or inspect.ismodule(holder):
            continue
        visited.add(id(holder))
        members = getattr(holder, "transforms", None)
        if not isinstance(members, (list, tuple)) and type(holder).__name__ == "Sequential":
            members = list(holder)
        if isinstance(members, (list, tuple)):
            callables = [member for member in members if callable(member)]
            members_by_id |= {id(member): member for member in callables}
            todo += [(member, depth + 1) for member in callables]
        attributes = list(reading.attributes(holder).values())[:64]
        todo += [(value, depth + 1) for value in attributes if _may_hold(value)]
    return members_by_id


def _may_hold(value: Any) -> bool:
    scalars = (str, bytes, int, float, complex, type(None), type)
    return not isinstance(value, scalars) and not type(value).__module__.startswith(("numpy", "torch._C"))


def _qualname(frame: FrameType) -> str:
    code = frame.f_code
    name = getattr(code, "co_qualname", None)
    if name is None:  # Python 3.10
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        name = f"{type(first).__qualname__}.{code.co_name}" if hasattr(type(first), code.co_name) else code.co_name
    return str(name).replace("<locals>.", "")
