"""Who keeps growing memory: a bounded census of what a training loop can reach.

Runs inside the user's program, at a step boundary, on the loop's own thread. It therefore imports
the standard library only, never imports torch or numpy for a program that does not, runs none of
the program's own code (no ``__len__``, ``__iter__``, ``__getattr__`` or property of a user class),
draws no random number, touches no gradient, and never raises. It is bounded in time and in objects:
what it could not reach it leaves out, and says so in ``complete``.
"""

from __future__ import annotations

import functools
import itertools
import queue
import sys
import time
import types
from collections import UserDict, UserList, deque
from collections.abc import Iterable, Iterator
from typing import Any

from unstall.child import handlers, reading, sizes
from unstall.child.user_files import is_program_file, package_of

TIME_LIMIT_S = 0.030
OBJECT_LIMIT = 200_000
ENTRY_LIMIT = 5_000
HOP_LIMIT = 3
FRAME_LIMIT = 50
CHILD_LIMIT = 64
"""A larger container is measured by a sample, and its elements get no entries of their own."""

_Owner = tuple[str, str]  # file and qualified name of the function or class that holds an object
_Item = tuple[str, Any, _Owner, int]  # path, object, owner, hops from a name

_CO_OPTIMIZED = 0x1  # a function's code: its locals are no dictionary
# Before 3.13, code that asks for its locals as a dictionary shares it with `frame.f_locals`.
_READS_LOCALS = frozenset({"locals", "vars"})
_ATOMS = frozenset({int, float, bool, complex, type(None), range, slice, types.ModuleType}) | {
    types.CodeType,
    types.FrameType,
    types.BuiltinFunctionType,
}
_ENTERED = (types.SimpleNamespace, queue.Queue, UserDict, UserList)
"""The standard library's classes that programs keep things in."""


def probe(frame: types.FrameType, *, time_limit_s: float = TIME_LIMIT_S) -> dict[str, Any]:
    """Count what the loop in `frame` and its callers hold.

    Args:
        frame: the live frame of the user's loop.
        time_limit_s: about the most that it takes of a core; what others take of the core meanwhile cuts no look short.

    Returns:
        JSON-serialisable: ``loop`` (file and function), ``complete``, and ``entries``: path →
        ``kind``, ``len``, ``bytes`` (estimated), ``bounded``, ``file``, ``function`` and ``graph``
        (None, or ``nodes``, ``span``: how many autograd operations ago its oldest node was made,
        and ``complete``).
    """
    census = _Census(time.thread_time() + time_limit_s)
    try:
        with reading.unobserved():
            census.add_frames(frame)
            census.add_modules()
            census.run()
    except Exception as error:  # whatever a program's objects do, what was counted until then stands
        if handlers.raised(error):
            raise
        census.complete = False
    return {
        "loop": {"file": frame.f_code.co_filename, "function": _qualified(frame.f_code)},
        "complete": census.complete,
        "entries": census.entries,
    }


class _Census:
    """A breadth-first walk; what the program's own code holds comes before what it is built on holds."""

    def __init__(self, deadline: float) -> None:
        self.sizer = sizes.Sizer(deadline)
        self.entries: dict[str, dict[str, Any]] = {}
        self.complete = True
        self._main_file = ""
        self._packages = {""}  # of the modules that are not installed; those of the frames follow
        self._visited: set[int] = set()
        self._names: set[str] = set()
        self._users: deque[_Item] = deque()
        self._libraries: deque[_Item] = deque()

    def add_frames(self, loop: types.FrameType) -> None:
        """The loop's locals, those of the program's frames that called it, and their globals."""
        frame: types.FrameType | None = loop
        for _ in range(FRAME_LIMIT):
            if frame is None:
                return
            file = frame.f_code.co_filename
            if frame is loop or is_program_file(file):
                self._packages.add(package_of(file))
                module = frame.f_globals.get("__name__")
                if module == "__main__":
                    self._main_file = file
                if frame.f_code.co_flags & _CO_OPTIMIZED:
                    function = _qualified(frame.f_code)
                    self._add_names(_locals(frame), (file, function), function)
                self._add_names(frame.f_globals, (file, "<module>"), str(module))
            frame = frame.f_back

    def add_modules(self) -> None:
        """The globals of the user's modules, and of those of the installed packages that the loop runs through."""
        for name in _modules_of(frozenset(self._packages), len(sys.modules), next(reversed(sys.modules))):
            module = sys.modules.get(name)
            file = _module_file(module)
            if module is not None and file:
                self._add_names(module.__dict__, (file, "<module>"), name, bare=False)

    def _add_names(self, names: dict[str, Any], owner: _Owner, qualifier: str, bare: bool = True) -> None:
        if id(names) in self._visited:
            return
        self._visited.add(id(names))
        for name, value in list(names.items()):
            if type(name) is str and not name.startswith("__") and type(value) not in _ATOMS:
                path = name if bare and name not in self._names else f"{qualifier}.{name}"
                self._names.add(path)
                self._users.append((path, value, owner, 0))

    def run(self) -> None:
        """Visit until nothing is left, or until the time or the number of objects is used up."""
        for visited in itertools.count():
            if not self._users and not self._libraries:
                return
            expired = visited & 31 == 31 and time.thread_time() > self.sizer.deadline
            if expired or visited >= OBJECT_LIMIT or len(self.entries) >= ENTRY_LIMIT:
                self.complete = False
                return
            path, value, owner, hops = (self._users or self._libraries).popleft()
            if id(value) in self._visited:
                continue
            self._visited.add(id(value))
            try:
                self._visit(path, value, owner, hops)
            except Exception as error:  # an object that cannot be looked at is left out
                if handlers.raised(error):
                    raise
                self.complete = False

    def _visit(self, path: str, value: Any, owner: _Owner, hops: int) -> None:
        entry = self.sizer.measure(value)
        if entry is not None:
            name = path
            if entry["kind"] == "lru_cache":
                name = path + ".cache_info"
                code = getattr(getattr(value, "__wrapped__", None), "__code__", None)
                if code is not None:  # whatever name the cache goes by, this is the function that fills it
                    wrapped = value.__wrapped__.__qualname__
                    entry = {**entry, "wrapped": [code.co_filename, wrapped, code.co_firstlineno]}
            self.entries.setdefault(name, {**entry, "file": owner[0], "function": owner[1]})
        if hops < HOP_LIMIT:
            holder = self._owner_of(value) or owner
            line = self._users if is_program_file(holder[0]) else self._libraries
            for step, child in itertools.chain(_elements(value), self._attributes(value)):
                if type(child) not in _ATOMS:
                    line.append((path + step, child, holder, hops + 1))

    def _attributes(self, value: Any) -> Iterator[tuple[str, Any]]:
        """What an object holds besides its elements, and how its path goes on."""
        kind = type(value)
        if kind is types.FunctionType:
            if is_program_file(value.__code__.co_filename):
                yield from _held_by_function(value)
        elif kind is types.MethodType:
            yield "", value.__self__
        elif kind is functools.partial:
            yield from (("", value.func), (".args", value.args), (".keywords", value.keywords))
        elif kind is property:
            yield "", value.fget
        elif kind in (staticmethod, classmethod, sizes.LRU_CACHE):
            yield "", value.__wrapped__
        elif issubclass(kind, type):
            if self._class_file(value):
                for name, attribute in list(type.__getattribute__(value, "__dict__").items()):
                    if not name.startswith("__") or type(attribute) is types.FunctionType:
                        yield f".{name}", attribute
        elif not issubclass(kind, self.sizer.tensor) and self._is_entered(kind):
            yield from ((f".{name}", attribute) for name, attribute in sizes.fields(value))
            yield "", kind

    def _owner_of(self, value: Any) -> _Owner | None:
        if type(value) is types.FunctionType:
            return value.__code__.co_filename, value.__qualname__
        kind = value if isinstance(value, type) else type(value)
        file = self._class_file(kind)
        return (file, kind.__qualname__) if file else None

    def _class_file(self, kind: type) -> str:
        """The file of a class of the program's own; empty for all others."""
        module = getattr(kind, "__module__", None)
        if module == "__main__":
            return self._main_file or "__main__"
        file = _module_file(sys.modules.get(module)) if type(module) is str else ""
        return file if file and is_program_file(file) else ""

    def _is_entered(self, kind: type) -> bool:
        """Whether instances of a class may hold what programs collect; the language's do not."""
        if issubclass(kind, _ENTERED) or self._class_file(kind):
            return True
        package = str(getattr(kind, "__module__", "builtins")).partition(".")[0]
        return package not in sys.stdlib_module_names and package not in ("unstall", "numpy")


@functools.lru_cache(maxsize=1)
def _modules_of(packages: frozenset[str], _imported: int, _last: str) -> list[str]:
    """Names of the program's modules that are in these packages; asked anew once more modules are imported.

    A program has thousands, which lie cold in memory: to touch each takes up to 50 ms. Most are of few packages, and
    those of a package that is not asked for are passed over by their names.
    """
    found: list[str] = []
    is_searched: dict[str, bool] = {}  # by the first part of a module's name
    for name in list(sys.modules):  # a list of pairs would be enough objects to set off the garbage collector
        top = name.partition(".")[0] if type(name) is str else ""
        if top not in is_searched:
            file = _module_file(sys.modules.get(top))
            is_searched[top] = not file or _is_program_module(file, packages)
        if is_searched[top] and _is_program_module(_module_file(sys.modules.get(name)), packages):
            found.append(name)
    return found


def _is_program_module(file: str, packages: frozenset[str]) -> bool:
    return bool(file) and is_program_file(file) and package_of(file) in packages


def _module_file(module: Any) -> str:
    file = module.__dict__.get("__file__") if isinstance(module, types.ModuleType) else None
    return file if type(file) is str else ""


def _qualified(code: types.CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # the qualified name is there from 3.11 on


def _locals(frame: types.FrameType) -> dict[str, Any]:
    """A copy of a function frame's locals that leaves nothing behind in the frame."""
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if not _READS_LOCALS.isdisjoint(frame.f_code.co_names):
        return {}  # the program may hold the very dictionary that reading would refresh
    snapshot: Any = frame.f_locals
    copy = dict(snapshot)
    if sys.getrefcount(snapshot) <= 3:  # the frame's, this variable's and the argument's
        snapshot.clear()  # or the frame would keep what the program deletes later
    return copy


def _elements(value: Any) -> Iterable[tuple[str, Any]]:
    base = sizes.base_of(type(value))
    if base is None or sizes.length(value) > CHILD_LIMIT:
        return ()
    if base is dict:
        return [(_key(key, i), element) for i, (key, element) in enumerate(list(dict.items(value)))]
    return [(f"[{i}]", element) for i, element in enumerate(sizes.elements(value, CHILD_LIMIT))]


def _key(key: Any, index: int) -> str:
    return f"[{key!r:.40}]" if type(key) in (str, int) else f"[#{index}]"


def _held_by_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """A function's closure, the defaults of its arguments, and its attributes."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield f".{name}", cell.cell_contents
        except ValueError:  # not bound yet
            continue
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    yield from ((f".{name}", value) for name, value in zip(names[-len(defaults) :], defaults))
    yield from ((f".{name}", v) for name, v in list((function.__kwdefaults__ or {}).items()))
    for name, value in list(function.__dict__.items()):
        yield ("" if name == "__wrapped__" else f".{name}"), value
