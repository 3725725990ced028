"""The recorder in pure Python, for an interpreter that the C one was not built for. Same file, same calls, slower.

See ``layout`` for the file. Differences: a wrapped function adds a frame to tracebacks, has ``__wrapped__``, and
lies in this file; and neither CPU time nor run-delay of a span is measured.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from unstall.child import layout

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNT_AT, _DROPPED_AT, _CONTROL_AT, _TICKS_AT, _FLUSHED_AT = (
    layout.HEADER_AT[name] for name in ("count", "dropped", "control", "ticks", "flushed")
)

_names: dict[str, int] = {}
_watched_calls: dict[int, int] = {}
_on_name: Callable[[int, str], Any] | None = None
_watcher: Callable[[int, int, Any, Any], Any] | None = None
_every = False
_modules = False
_local = threading.local()


class _SpanFile:
    """The open recording of this process."""

    def __init__(self, path: str | bytes):
        self.path = path
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, layout.MAPPED_BYTES)
            self.map = mmap.mmap(fd, layout.MAPPED_BYTES)
        finally:
            os.close(fd)
        counters, refetches = [0] * layout.TICK_KINDS, [0] * (1 + layout.REFETCHES)
        about = (layout.VERSION, layout.RECORD_BYTES, time.monotonic_ns(), os.getpid(), os.getppid())
        layout.HEADER.pack_into(self.map, 0, b"", *about, 0, 0, 0, layout.TAIL_RECORDS, *counters, 0, *refetches)
        self.map[: len(layout.MAGIC)] = layout.MAGIC  # the last: from here on it is a recording
        self.count = self.flushed = self.dropped = 0
        self.full = False
        self.ticks = counters
        self.main_calls_models = False
        self.serving = 0
        """The thread that calls models, where the main one does not; 0 if there is none."""

    def write(self, *fields: int) -> None:
        used = self.count - self.flushed
        if used == layout.TAIL_RECORDS and (self.full or not self._flush()):
            self.full = True
            self.dropped += 1
            struct.pack_into("<Q", self.map, _DROPPED_AT, self.dropped)
            return
        offset = layout.HEADER_BYTES + (self.count - self.flushed) * layout.RECORD_BYTES
        layout.RECORD.pack_into(self.map, offset, *fields)
        self.count += 1
        struct.pack_into("<Q", self.map, _COUNT_AT, self.count)

    def _flush(self) -> bool:
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            tail = self.map[layout.HEADER_BYTES : layout.MAPPED_BYTES]
            if os.pwrite(fd, tail, layout.MAPPED_BYTES + self.flushed * layout.RECORD_BYTES) != len(tail):
                return False
        except OSError:
            return False
        finally:
            os.close(fd)
        self.flushed += layout.TAIL_RECORDS
        struct.pack_into("<Q", self.map, _FLUSHED_AT, self.flushed)
        return True

    def tick(self, kind: int) -> int:
        """Count it; return the control word."""
        self.ticks[kind] += 1
        struct.pack_into("<Q", self.map, _TICKS_AT + 8 * kind, self.ticks[kind])
        control: int = struct.unpack_from("<I", self.map, _CONTROL_AT)[0]
        return control


_file: _SpanFile | None = None


class _Thread:
    """The open spans of a thread: [name, start, ns inside]."""

    def __init__(self, file: _SpanFile):
        self.file = file
        self.id = threading.get_native_id()
        self.main = self.id == os.getpid()
        self.model_calls = 0
        self.stack: list[list[int]] = []
        self.roots = [0] * layout.ROOT_GROUPS


def _thread(file: _SpanFile) -> _Thread:
    state: _Thread | None = getattr(_local, "state", None)
    if state is None or state.file is not file:
        state = _local.state = _Thread(file)
    return state


def _begin(thread: _Thread, name: int) -> int:
    thread.stack.append([name, time.monotonic_ns(), 0])
    return len(thread.stack) - 1


def _end(thread: _Thread, depth: int, arg: int, flags: int) -> None:
    now = time.monotonic_ns()
    if depth >= len(thread.stack):
        return
    name, start, inside = thread.stack[depth]
    del thread.stack[depth:]
    duration = now - start
    if depth:
        thread.stack[depth - 1][2] += duration
    flags |= layout.MAIN if thread.main else 0
    thread.file.write(
        start,
        duration,
        max(duration - inside, 0),
        0,
        0,
        arg & (2**64 - 1),
        thread.id,
        name,
        min(depth, 255),
        flags,
    )


def _end_named(thread: _Thread, number: int, arg: int, flags: int) -> None:
    for depth in range(len(thread.stack) - 1, -1, -1):
        if thread.stack[depth][0] == number:
            _end(thread, depth, arg, flags)
            return


def _is_heard(thread: _Thread) -> bool:
    """Whether the watcher hears of what this thread does: the main thread, or a server's that calls its model."""
    return thread.main or thread.file.serving == thread.id


def _look_for_server(thread: _Thread, kind: int) -> None:
    file = thread.file
    if thread.main:
        file.main_calls_models |= kind in (layout.TICK_FORWARD, layout.TICK_OPTIMIZER)
    elif not file.serving and not file.main_calls_models and kind == layout.TICK_FORWARD:
        thread.model_calls += 1
        if thread.model_calls >= layout.SERVING_CALLS:
            file.serving = thread.id


def _tick(thread: _Thread, kind: int, name: int, first: Any, second: Any) -> None:
    control = thread.file.tick(kind)
    _look_for_server(thread, kind)
    if _watcher is None or not _is_heard(thread):
        return
    control = control if thread.main else 0  # the parent's wishes are for the main thread
    calls = _watched_calls.get(name, 0)
    if calls < layout.FIRST_CALLS:
        _watched_calls[name] = calls + 1
    elif not _every and not control:
        return
    _watcher(name, control, first, second)


def _bytes_of(result: Any) -> int:
    if isinstance(result, tuple) and result:
        result = result[0]
    if isinstance(result, int):
        return max(result, 0)
    return len(result) if isinstance(result, bytes) else 0


class SpanFunction:
    """Marks what ``wrap`` made; wrapped functions are plain functions here."""


def open(path: str | bytes) -> None:
    """Begin a new recording file; OSError when it cannot be made."""
    global _file
    _file = _SpanFile(path)


def close() -> None:
    """Stop recording; wrapped functions go on, unrecorded."""
    global _file
    _file = None


def intern(name: str) -> int:
    """The id of a name."""
    number = _names.get(name)
    if number is None:
        if len(_names) >= 65535:
            return 0
        number = _names[name] = len(_names) + 1
        if _on_name is not None:
            _on_name(number, name)
    return number


def names() -> dict[str, int]:
    """The ids given so far."""
    return dict(_names)


def add_audit_hook(handlers: dict[str, Callable[..., None]]) -> None:
    """From here on call ``handlers[event](*arguments)`` for these audit events, for good."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        handler = handlers.get(event)
        if handler is not None:
            handler(*arguments)

    sys.addaudithook(audit)


def begin(number: int) -> None:
    """Open a span on this thread."""
    if _file is not None:
        _begin(_thread(_file), number)


def end(number: int, arg: int = 0) -> None:
    """Close the innermost open span of this name."""
    if _file is not None:
        _end_named(_thread(_file), number, arg, 0)


def tick(kind: int, number: int, subject: Any) -> None:
    """Count one event of a kind."""
    if _file is not None:
        _tick(_thread(_file), kind, number, subject, None)


def hooks(name: str, kind: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """Two functions, to be called with a subject where a span of this name begins and ends."""
    number = intern(name)

    def before(subject: Any, *_: Any) -> None:
        if _file is not None:
            _tick(_thread(_file), kind, number, subject, None)
            _begin(_thread(_file), number)

    def after(subject: Any, *_: Any) -> None:
        end(number, id(subject))

    return before, after


def watch(callback: Callable[[int, int, Any, Any], Any] | None, every: bool) -> None:
    """Call back where a seam begins; see the C recorder."""
    global _watcher, _every
    _watcher, _every = callback, every


def on_name(callback: Callable[[int, str], Any] | None) -> None:
    """Call back for each new name."""
    global _on_name
    _on_name = callback


def control(value: int) -> None:
    """Set the control word."""
    if _file is not None:
        struct.pack_into("<I", _file.map, _CONTROL_AT, value)


def modules(flag: bool) -> None:
    """Record every module call, not only root calls."""
    global _modules
    _modules = bool(flag)


def wrap(
    func: Any,
    name: str,
    kind: int = -1,
    group: int = -1,
    network: bool = False,
    grad: Callable[[], bool] | None = None,
    after: Callable[..., int] | None = None,
) -> Any:
    """A function that records each call of ``func``."""
    number = intern(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if _file is None:
            return func(*args, **kwargs)
        thread = _thread(_file)
        if network and not (args and getattr(args[0], "family", 0) in (2, 10)):
            return func(*args, **kwargs)
        inner = group >= 0 and thread.roots[group] > 0
        if inner and not (_modules and group == 0 and _is_heard(thread)):
            return func(*args, **kwargs)
        first = args[0] if args else None
        flags = (layout.MODULE if inner else 0) | (layout.NETWORK if network else 0)
        if not inner and kind >= 0:
            second = args[1] if len(args) > 1 else next(iter(kwargs.values()), None)
            _tick(thread, kind, number, first, second)
            if grad is not None and not grad():
                flags |= layout.NOGRAD
        if group >= 0:
            thread.roots[group] += 1
        depth = _begin(thread, number)
        arg = 0 if network else id(first)
        try:
            result = func(*args, **kwargs)
            if network:
                arg = _bytes_of(result)
            elif after is not None:
                arg = after(result, *args, **kwargs)
            return result
        except BaseException:
            flags |= layout.ERROR
            raise
        finally:
            if group >= 0:
                thread.roots[group] -= 1
            if thread.file is _file:
                _end(thread, depth, arg, flags)

    try:
        return functools.wraps(func)(call)
    except (AttributeError, TypeError):
        return call


def inner(function: Any) -> Any:
    """What ``wrap`` or a span wrapped, or the function itself."""
    return getattr(function, "__wrapped__", function)


class span:
    """Record the time of a ``with`` block, or of each call of the function it decorates."""

    def __new__(cls, name: Any) -> Any:
        if callable(name) and not isinstance(name, str):
            return wrap(name, name.__qualname__)
        if not isinstance(name, str):
            raise TypeError(f"span() takes a name or a function, not {type(name).__name__}")
        return super().__new__(cls)

    def __init__(self, name: str):
        self.name = name
        self.entered = 0

    def __enter__(self) -> span:
        if _file is not None:
            _begin(_thread(_file), intern(self.name))
            self.entered += 1
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if _file is not None and self.entered > 0:
            self.entered -= 1
            _end_named(_thread(_file), intern(self.name), 0, layout.ERROR if kind is not None else 0)

    def __call__(self, func: Any) -> Any:
        return wrap(func, self.name)
