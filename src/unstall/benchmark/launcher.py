"""Start the program with the bootstrap in it, watch it until it ends, and leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from unstall.benchmark.plugins import declared
from unstall.benchmark.session import Session
from unstall.benchmark.signals import Signals
from unstall.environment import OPTIONS, RUN_DIR
from unstall.records.observations import Observation

BOOTSTRAP = Path(__file__).parents[1] / "child" / "bootstrap"
_POLL_S = 0.1
_STOP_PATIENCE_S = 8.0  # for a program that was asked to stop at a step, and again after SIGTERM
_ORPHAN_PATIENCE_S = 6.0  # loader workers look for their parent every 5 s
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Options:
    """What ``unstall run`` was asked to record."""

    steps: int | None = None
    sampling: bool = True
    nvtx: bool = False
    flops: bool = True
    tools: list[str] = field(default_factory=list)
    gpu_window: int = 0
    """Steps of a GPU's work to record after warm-up; 0 for none."""
    probing: bool = True
    """Whether to look at what the program keeps in memory while that grows."""
    extensions: list[str] = field(default_factory=list)
    """Names of modules that the program's processes import first of all, to call their ``install(child)``."""
    settings: dict[str, Any] = field(default_factory=dict)
    """For the extensions, as JSON: ``child.options["settings"]``."""
    environ: Callable[[dict[str, str]], dict[str, str]] | None = None
    """Makes the program's environment from the one it would have."""
    output: Path | None = None
    """A file that takes the program's stdout and stderr; its stdin is then empty."""

    def for_child(self) -> str:
        """As the bootstrap reads them."""
        facts: dict[str, Any] = {
            "parent": os.getpid(),
            "nvtx": self.nvtx,
            "flops": self.flops,
            "tools": self.tools,
            "extensions": self.extensions,
            "settings": self.settings,
            "plugins": declared(),
        }
        return json.dumps(facts)


@dataclass(frozen=True)
class Outcome:
    """How the program ended: its exit code, or minus the signal that killed it, as subprocess tells it."""

    status: int
    observation: Observation
    interrupted: bool = False
    """Whether unstall was told to end meanwhile, by Ctrl-C or a signal."""


def environment(directory: Path, options: Options) -> dict[str, str]:
    """The program's environment: its own, and the bootstrap first on PYTHONPATH."""
    env = dict(os.environ)
    path = env.get("PYTHONPATH")
    env["PYTHONPATH"] = f"{BOOTSTRAP}{os.pathsep}{path}" if path else str(BOOTSTRAP)
    env[RUN_DIR] = str(directory)
    env[OPTIONS] = options.for_child()
    return options.environ(env) if options.environ else env


class Program:
    """A program that was started under observation: poll it about ten times a second until it has ended."""

    def __init__(self, command: list[str], directory: Path, options: Options):
        self.directory = directory
        self.status: int | None = None
        self._others = {child.pid for child in psutil.Process().children()}
        self._stopping: float | None = None
        self.pid = _spawn(command, directory, options)
        self.session = Session(
            self.pid,
            directory,
            steps=options.steps,
            sampling=options.sampling,
            probing=options.probing,
            gpu_window=options.gpu_window > 0,
        )

    def poll(self) -> bool:
        """Take every look that is due; False once the program has ended."""
        if self.status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.status = os.waitstatus_to_exitcode(status)
        if self.status is not None:
            return False
        self.session.poll()
        if self.session.stopped:
            self._stopping = self._stopping or time.monotonic()
            _insist(self.pid, time.monotonic() - self._stopping)
        return True

    def kill(self, number: int) -> None:
        """Send it a signal; nothing happens when it has ended."""
        if self.status is None:
            _kill(self.pid, number)

    def finish(self) -> Outcome:
        """After its end: close the observation and see that nothing of it is left."""
        assert self.status is not None
        observation = self.session.finish()
        _end_orphans(self.directory, self._others, killed=self.status < 0 or observation.stopped)
        return Outcome(self.status, observation)


def launch(command: list[str], directory: Path, options: Options, on_poll: Callable[[Session], None]) -> Outcome:
    """Run a command to its end under observation. ``on_poll`` is called about ten times a second."""
    with adopting_orphans(), Signals() as signals:
        program = Program(command, directory, options)
        while True:
            for number in signals.wait(_POLL_S):
                program.kill(number)
            if not program.poll():
                break
            on_poll(program.session)
        outcome = program.finish()
    return replace(outcome, interrupted=bool(signals.seen))


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Be the parent of what the programs leave behind, so that it can be seen; for as long as this is open."""
    _adopt_orphans(True)
    try:
        yield
    finally:
        _adopt_orphans(False)


def _spawn(command: list[str], directory: Path, options: Options) -> int:
    """Start the program; its pid. OSError when there is nothing to start."""
    actions = []
    if options.output is not None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(options.output), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
    return os.posix_spawn(
        command[0],
        command,
        environment(directory, options),
        file_actions=actions,
        # What Python ignores for itself must not be ignored in the program.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )


def die_of(number: int) -> None:
    """End this process by the same signal, so that a shell sees what it would have seen."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own core file, if any
    if number != signal.SIGKILL:  # it has no handler to set
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _insist(pid: int, waited: float) -> None:
    """A program that catches every exception does not stop at a step: it is told more plainly."""
    if waited > 2 * _STOP_PATIENCE_S:
        _kill(pid, signal.SIGKILL)
    elif waited > _STOP_PATIENCE_S:
        _kill(pid, signal.SIGTERM)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _adopt_orphans(wanted: bool) -> None:
    """Become the parent of what the program leaves behind, so that it can be seen; or be it no more."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
    except (OSError, AttributeError):
        pass  # not Linux


def _end_orphans(directory: Path, others: set[int], *, killed: bool) -> None:
    """Reap what has ended; of a killed program, end the processes that recorded for it, its workers.

    What a program leaves running on purpose when it ends by itself is its own affair.
    """
    recorded = {int(path.stem.split("-")[1]) for path in directory.glob("rec-*.bin")} if killed else set()
    deadline = time.monotonic() + _ORPHAN_PATIENCE_S
    while True:
        _reap(others)
        left = [child for child in psutil.Process().children(recursive=True) if child.pid in recorded]
        if not left:
            return
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    for child in left:
        _kill(child.pid, signal.SIGKILL)
    psutil.wait_procs(left, timeout=2)
    _reap(others)


def _reap(others: set[int]) -> None:
    """Take leave of the orphans that have ended; ``others`` are this process's children of before."""
    for child in psutil.Process().children():
        try:
            if child.pid not in others and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)
        except (psutil.Error, ChildProcessError):
            pass
