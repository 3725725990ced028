"""Start the program with the bootstrap in it, watch it until it ends, and leave nothing behind."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from unstall.benchmark.session import Observation, Session
from unstall.benchmark.signals import Signals

BOOTSTRAP = Path(__file__).with_name("bootstrap")
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

    def for_child(self) -> str:
        """As the bootstrap reads them."""
        facts: dict[str, Any] = {
            "parent": os.getpid(),
            "nvtx": self.nvtx,
            "flops": self.flops,
            "tools": self.tools,
        }
        return json.dumps(facts)


@dataclass
class Outcome:
    """How the program ended: its exit code, or minus the signal that killed it, as subprocess tells it."""

    status: int
    observation: Observation
    interrupted: bool = False


def environment(directory: Path, options: Options) -> dict[str, str]:
    """The program's environment: its own, and the bootstrap first on PYTHONPATH."""
    env = dict(os.environ)
    path = env.get("PYTHONPATH")
    env["PYTHONPATH"] = f"{BOOTSTRAP}{os.pathsep}{path}" if path else str(BOOTSTRAP)
    env["UNSTALL_RUN_DIR"] = str(directory)
    env["UNSTALL_OPTIONS"] = options.for_child()
    return env


def launch(command: list[str], directory: Path, options: Options, on_poll: Callable[[Session], None]) -> Outcome:
    """Run a command to its end under observation. ``on_poll`` is called about ten times a second."""
    others = {child.pid for child in psutil.Process().children()}
    _adopt_orphans(True)
    with Signals() as signals:
        pid = os.posix_spawn(
            command[0],
            command,
            environment(directory, options),
            # What Python ignores for itself must not be ignored in the program.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        session = Session(pid, directory, steps=options.steps, sampling=options.sampling)
        stopping: float | None = None
        while True:
            for number in signals.wait(_POLL_S):
                _kill(pid, number)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            session.poll()
            on_poll(session)
            if session.observation.stopped:
                stopping = stopping or time.monotonic()
                _insist(pid, time.monotonic() - stopping)
        observation = session.finish()
    code = os.waitstatus_to_exitcode(status)
    _end_orphans(directory, others, killed=code < 0 or observation.stopped)
    _adopt_orphans(False)
    return Outcome(code, observation)


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
