"""Start the program with the bootstrap in it, watch it until it ends, and leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import psutil

from unstall.benchmark import interpreter
from unstall.benchmark.session import Session
from unstall.benchmark.signals import SignalRelay
from unstall.benchmark.thresholds import ORPHANS_PATIENCE_S, STOP_PATIENCE_S
from unstall.child.plugins import declared
from unstall.environment import OPTIONS, RUN_DIR
from unstall.records.observations import Observation

BOOTSTRAP = Path(__file__).parents[1] / "child" / "bootstrap"
_ABANDONED_POLL_S = 0.02
_IGNORED_BY_PYTHON = [signal.SIGPIPE, signal.SIGXFSZ]
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class RecordingOptions:
    """What ``unstall run`` was asked to record."""

    steps: int | None = None
    sampling: bool = True
    nvtx: bool = False
    flops: bool = True
    memory: bool = False
    """Whether memray records the allocations."""
    gpu_window: int = 0
    """Steps of a GPU's work to record after warm-up; 0 for none."""
    probing: bool = True
    """Whether to look at what the program keeps in memory while that grows."""
    extensions: list[str] = field(default_factory=list)
    """Names of modules that the program's processes import first of all, to call their ``install(child)``."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the extensions, as JSON: ``child.options["settings"]``."""
    environ: Callable[[dict[str, str]], dict[str, str]] | None = None
    """Makes the program's environment from the one it would have."""
    entrance: Sequence[str] = ()
    """The command's first words where they are not the program's own: those that enter a sandbox."""
    output: Path | None = None
    """A file that takes the program's stdout and stderr; its stdin is then empty."""
    stop_patience_s: float = STOP_PATIENCE_S
    orphans_patience_s: float = ORPHANS_PATIENCE_S

    def programs_own(self, command: Sequence[str]) -> Sequence[str]:
        """The words of a command that start the program itself."""
        return command[len(self.entrance) :]

    def for_child(self) -> str:
        """As the bootstrap reads them."""
        names = ("nvtx", "flops", "memory", "extensions", "settings")
        options = {name: getattr(self, name) for name in names}
        return json.dumps({"parent": os.getpid(), "plugins": declared(), **options})


@dataclass(frozen=True)
class ProgramExit:
    """How the program ended: its exit code, or minus the signal that killed it, as in subprocess."""

    status: int
    observation: Observation
    unrecorded: str | None = None
    """Why the program's first process could not be recorded, if it is known before."""
    goes_on: bool = False
    """Whether it is a part of a program that was running before, and may go on: then the status means nothing."""


def environment(command: Sequence[str], directory: Path, options: RecordingOptions) -> dict[str, str]:
    """The program's environment: its own, and the bootstrap first on PYTHONPATH.

    A Python without ``site`` would leave the bootstrap's folder on its ``sys.path``: it has its own environment only.
    """
    env = dict(os.environ)
    if interpreter.ignores_site(options.programs_own(command)):
        return env
    path = env.get("PYTHONPATH")
    env["PYTHONPATH"] = f"{BOOTSTRAP}{os.pathsep}{path}" if path else str(BOOTSTRAP)
    env[RUN_DIR] = str(directory)
    env[OPTIONS] = options.for_child()
    return options.environ(env) if options.environ else env


class LaunchedProgram:
    """A program that was started under observation: poll it until it has ended, as often as its session says."""

    def __init__(
        self, command: list[str], directory: Path, options: RecordingOptions, mask: Collection[int] | None = None
    ):
        """``mask``: the signals that are blocked in it; None: those that are in this process."""
        self.directory = directory
        self.status: int | None = None
        self.stopped_by: int | None = None
        """The signal that stopped it, if that has happened since the poll before."""
        self._earlier_children = {child.pid for child in psutil.Process().children()}
        self._stopping: float | None = None
        self._forced = False
        self._options = options
        self._unrecorded = interpreter.unrecorded(options.programs_own(command))
        self.pid = _spawn(command, directory, options, mask)
        self._session_id = os.getsid(0)
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
            changed, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            stopped = changed and os.WIFSTOPPED(status)
            self.stopped_by = os.WSTOPSIG(status) if stopped else None
            if changed and not stopped:
                self.status = os.waitstatus_to_exitcode(status)
        if self.status is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            self._session_id = os.getsid(self.pid)
        self.session.poll()
        if self.session.stopped:
            self._stopping = self._stopping or time.monotonic()
            self._escalate_stop(time.monotonic() - self._stopping)
        return True

    def kill(self, number: int) -> None:
        """Send it a signal; nothing happens when it has ended."""
        if self.status is None:
            _kill(self.pid, number)

    def finish(self) -> ProgramExit:
        """After its end: close the observation and see that nothing of it is left."""
        assert self.status is not None
        observation = self.session.finish()
        self._wait_for_orphans(self._options.orphans_patience_s)
        return ProgramExit(self.status, observation, self._unrecorded)

    def abandon(self) -> None:
        """End it at once, with its workers: nobody waits for what it would have shown."""
        self.kill(signal.SIGKILL)
        while self.poll():
            time.sleep(_ABANDONED_POLL_S)
        self._forced = True
        self.session.finish()
        self._wait_for_orphans(patience_s=0.0)

    def _escalate_stop(self, waited: float) -> None:
        """A program that catches every exception does not stop at a step: it gets SIGTERM, and then SIGKILL."""
        patience_s = self._options.stop_patience_s
        if waited > patience_s:
            self._forced = True
            _kill(self.pid, signal.SIGKILL if waited > 2 * patience_s else signal.SIGTERM)

    def _wait_for_orphans(self, patience_s: float) -> None:
        """Reap what has ended. Loader workers of a program that was killed notice it and end; wait for that.

        What a program leaves running is its own affair, however it ended. But where unstall had to kill it, its workers
        end with it; a daemon, which is in a session of its own, does not.
        """
        assert self.status is not None
        deadline = time.monotonic() + patience_s
        while True:
            _reap(self._earlier_children)
            left = self._recorded_orphans() if self._forced or self.status < 0 else []
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if self._forced:
            for child in left:
                _kill(child.pid, signal.SIGKILL)
            psutil.wait_procs(left, timeout=2)
            _reap(self._earlier_children)

    def _recorded_orphans(self) -> list[psutil.Process]:
        recorded = {int(path.stem.split("-")[1]) for path in self.directory.glob("rec-*.bin")}
        descendants = psutil.Process().children(recursive=True)
        return [child for child in descendants if child.pid in recorded and _session_of(child.pid) == self._session_id]


def launch(
    command: list[str], directory: Path, options: RecordingOptions, on_poll: Callable[[Session], None]
) -> ProgramExit:
    """Run a person's command to its end under observation: the signals that this process is sent are the program's.

    ``on_poll`` is called some times a second.
    """
    with adopting_orphans(), SignalRelay() as signals:
        program = LaunchedProgram(command, directory, options, signals.mask)
        while True:
            for number in signals.wait(program.session.poll_s):
                program.kill(number)
            if not program.poll():
                break
            if signals.stop_asked and program.stopped_by is not None:
                _stop_too(program, signals)
            on_poll(program.session)
        return program.finish()


def launch_trial(
    command: list[str], directory: Path, options: RecordingOptions, on_poll: Callable[[Session], None]
) -> ProgramExit:
    """The same for a run that only unstall wants. Ctrl-C is this process's: the program ends at once, whatever it does
    about signals.
    """
    with adopting_orphans():
        program = LaunchedProgram(command, directory, options)
        try:
            while program.poll():
                on_poll(program.session)
                time.sleep(program.session.poll_s)
        except BaseException:
            program.abandon()
            raise
        return program.finish()


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Be the parent of what the programs leave behind, so that it can be seen; for as long as this is open."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _stop_too(program: LaunchedProgram, signals: SignalRelay) -> None:
    """Ctrl-Z: the shell waits for this process to stop. Not before the program has done so: it may not want to."""
    assert program.stopped_by is not None
    began = time.monotonic()
    signals.stop(program.stopped_by)
    program.session.disturbed.append((began, time.monotonic()))


def _spawn(command: list[str], directory: Path, options: RecordingOptions, mask: Collection[int] | None) -> int:
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
        environment(command, directory, options),
        file_actions=actions,
        # What Python ignores for itself must not be ignored in the program.
        setsigdef=_IGNORED_BY_PYTHON,
        setsigmask=signal.pthread_sigmask(signal.SIG_BLOCK, ()) if mask is None else mask,
    )


def become(command: list[str]) -> NoReturn:
    """Be the program, in this process and without any observation. OSError when there is nothing to start."""
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execv(command[0], command)


def die_of(number: int) -> None:
    """End this process by the same signal, so that a shell sees what it would have seen."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own core file, if any
    if number != signal.SIGKILL:  # it has no handler to set
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})  # for one that this process was started without


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _reap(others: set[int]) -> None:
    """Take leave of the orphans that have ended; ``others`` are this process's children of before."""
    for child in psutil.Process().children():
        try:
            if child.pid not in others and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)
        except (psutil.Error, ChildProcessError):
            pass
