"""What the bootstrap starts in every Python process of the user's program. Standard library only; must not raise.

The process writes two files into the run directory: ``rec-<pid>.bin``, the span records, and ``info-<pid>.jsonl``,
one JSON object a line: what the records' numbers mean and what was seen at their seams.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from unstall import environment
from unstall.child import launchers, recording, seams
from unstall.child.importhook import PostImport
from unstall.records.vocabulary import Plugins

if TYPE_CHECKING:
    from collections.abc import Callable

    from unstall.child.watcher import Watcher

native = recording.native


class Child:
    """The recording of one process, begun at its first seam, and begun afresh in a forked child."""

    def __init__(self, directory: str, options: dict[str, Any]):
        self.directory = directory
        self.options = options
        self.pid = 0
        self.wanted = True
        self.watcher: Watcher | None = None
        self.plugins = Plugins()
        self.problems: list[tuple[str, str]] = []
        """Each plug-in that is ignored, and why."""
        self.on_control: Callable[[str], None] | None = None
        """An extension's: called as ``on_control(seam)`` at the main thread's next seam when the parent asks for it."""
        self.on_fork: Callable[[], None] | None = None
        """An extension's: called in a forked child of the program, after the recording is set up for it."""

    def emit_fact(self, kind: str, **facts: Any) -> None:
        """Append a line of facts. The file is not kept open: the program may close descriptors it does not know."""
        line = json.dumps({"kind": kind, "t": time.monotonic(), **facts}, default=str, ensure_ascii=True) + "\n"
        try:
            fd = os.open(
                os.path.join(self.directory, f"info-{os.getpid()}.jsonl"),
                os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
                0o600,
            )
            try:
                os.write(fd, line.encode())
            finally:
                os.close(fd)
        except OSError:
            pass

    def open(self) -> None:
        """Begin this process's recording, once; a directory that takes no file means no recording, no harm."""
        if self.pid == os.getpid() or not self.wanted:
            return
        self.pid = os.getpid()
        try:
            native.open(os.path.join(self.directory, f"rec-{self.pid}.bin"))
        except OSError as error:
            self.wanted = False
            self.emit_fact("error", what="recording", error=str(error))
            return
        self.emit_fact(
            "process",
            pid=self.pid,
            parent=os.getppid(),
            native=recording.NATIVE,
            python=sys.version.split()[0],
            host=os.uname().nodename,
            **launchers.identity(),
        )
        for name, number in native.names().items():
            self.emit_fact("name", id=number, name=name)
        self._emit_plugins()

    def _emit_plugins(self) -> None:
        """What the parent needs to know of them to read the recording."""
        for phase in self.plugins.phases:
            self.emit_fact("phase", phase=phase)
        for seam in self.plugins.seams:
            self.emit_fact("seam", seam=seam)
        for what, error in self.problems:
            self.emit_fact("error", what=what, error=error)

    def move(self, directory: str) -> None:
        """Record into another directory from the next ``open`` on; the first calls of each seam are looked at again."""
        self.directory, self.pid, self.wanted = directory, 0, True
        self.watch()

    def close(self) -> None:
        """End this process's recording, and do not begin another by itself; ``move`` does."""
        native.close()
        native.watch(None, False)
        self.pid, self.wanted = 0, False

    def watch(self) -> None:
        """Look at the first calls of each seam, from here on."""
        from unstall.child.watcher import Watcher

        self.watcher = Watcher(self.emit_fact, self.options, self.call_extension)
        native.watch(self.watcher, False)

    def call_extension(self, seam: str) -> None:
        """The parent set the control word CALL: let the extension do what it waits for."""
        if self.on_control is not None:
            self.on_control(seam)

    def after_fork(self) -> None:
        """In a forked child: the parent's file is not ours."""
        opened = self.pid != 0
        native.close()
        native.watch(None, False)
        if self.watcher is not None:
            self.watcher.windows.abandon()
        allow_tracing()  # a fork does not inherit the leave
        if opened:
            self.open()
            native.watch(self._wait_for_training, False)
        if self.on_fork is not None:
            self.on_fork()

    def _wait_for_training(self, number: int, control: int, first: Any, second: Any) -> None:
        """A forked child that trains, as in a pool, is looked at as any process that does; a loader's worker is not."""
        from unstall.child.seams.optimizer import STEP

        if native.names().get(STEP.event) == number:
            self.watch()
            assert self.watcher is not None
            self.watcher(number, control, first, second)

    def record_memory(self) -> None:
        """Start memray, in the program's main process or in each rank, and not in their helpers."""
        if os.getppid() != self.options.get("parent") and not launchers.identity():
            return
        from unstall.child import memory

        if memory.is_worker_process():
            return
        try:
            atexit.register(self._stop_memory, memory.start(self.directory))
        except Exception as error:
            self.emit_fact("error", what="memray", error=str(error))

    def _stop_memory(self, stop: Callable[[], None]) -> None:
        try:
            stop()
        except Exception as error:  # the program's own exit must not suffer from it
            self.emit_fact("error", what="memray", error=str(error))


def allow_tracing() -> None:
    """Let py-spy, a sibling of this process, attach where Yama lets only ancestors do so."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            restricted = file.read().strip() == "1"
    except OSError:
        return
    if restricted:
        import ctypes

        pr_set_ptracer, any_process = 0x59616D61, ctypes.c_ulong(-1)
        ctypes.CDLL(None).prctl(pr_set_ptracer, any_process, 0, 0, 0)


def _load_plugins(child: Child) -> None:
    declared = child.options.get("plugins", {})
    if any(declared.values()):
        from unstall.child import plugins

        child.plugins, child.problems = plugins.load(declared)


Targets = dict[str, list[Any]]
"""Module name → functions that take the module, once imported, and put something in place there."""


def _extend(child: Child) -> Targets:
    """Import each module of ``Options.extensions`` and call its ``install(child)``.

    It may return targets as a seam has them; they are installed before the seams, so that these record the time of
    whatever an extension puts in the place of a library's function.
    """
    targets: Targets = {}
    for name in child.options.get("extensions", ()):
        try:
            added: Targets | None = importlib.import_module(name).install(child)
        except Exception as error:
            child.emit_fact("error", what=f"extension {name}", error=repr(error))
            continue
        for module, installers in (added or {}).items():
            targets.setdefault(module, []).extend(installers)
    return targets


def install(child: Child) -> None:
    """Put the extensions and the seams in place, for the libraries imported by now and those to come."""
    _load_plugins(child)
    targets = _extend(child)
    recording.opened_by, recording.emit_fact = child.open, child.emit_fact
    native.on_name(lambda number, name: child.emit_fact("name", id=number, name=name) if child.pid else None)
    child.watch()
    os.register_at_fork(after_in_child=child.after_fork)
    import gc  # noqa: F401  built in: it cannot be watched for, and costs nothing

    for name, installers in seams.targets().items():
        targets.setdefault(name, []).extend(installers)
    hook = PostImport(
        targets,
        lambda name, error: child.emit_fact("error", what=f"seam {name}", error=repr(error)),
    )
    sys.meta_path.insert(0, hook)
    hook.install_loaded()


def start() -> None:
    """Called by the bootstrap."""
    options = json.loads(os.environ.get(environment.OPTIONS, "{}"))
    child = Child(os.environ[environment.RUN_DIR], options)
    allow_tracing()
    if options.get("nvtx"):
        from unstall.child import nvtx

        try:
            recording.nvtx_ranges = nvtx.ranges()
        except ImportError as error:
            child.emit_fact("error", what="nvtx", error=str(error))
    install(child)
    if options.get("memory"):
        child.record_memory()
