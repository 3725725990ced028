"""Record a program that runs already, from inside: Python 3.14 and later run a script in it (``sys.remote_exec``)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from unstall.benchmark import interpreter, ptrace
from unstall.benchmark.attached import CannotAttach, process_tree, read_command, variables
from unstall.benchmark.launcher import BOOTSTRAP, RecordingOptions
from unstall.benchmark.rundir import ERRORS_NAME
from unstall.benchmark.session import Session
from unstall.benchmark.thresholds import ANSWER_PATIENCE_S, OTHER_ANSWERS_S
from unstall.child.injected import BEGIN, END
from unstall.environment import RUN_DIR
from unstall.records.observations import Observation

_POLL_S = 0.1
_CALL_LIMIT_S = 20.0
_TOO_OLD = 9
_CALL = f"""
import sys
if not hasattr(sys, "remote_exec"):
    sys.exit({_TOO_OLD})
sys.remote_exec(int(sys.argv[1]), sys.argv[2])
"""
_IN_THE_PROGRAM = """
from pathlib import Path
bootstrap = {"__name__": "unstall injection"}
exec(compile(Path(source).read_text(), source, "exec"), bootstrap)
bootstrap["start"](folder, "unstall.child.injected", errors, *arguments)
Path(script).unlink(missing_ok=True)
"""


def remote_exec(pid: int, script: Path) -> None:
    """Have the main thread of a Python run a script at its next chance. Raises CannotAttach where that cannot be."""
    # The program's own Python calls: it has to be of the same version.
    command = [_executable(pid), "-I", "-c", _CALL, str(pid), str(script)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_CALL_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotAttach(f"nothing can be put into process {pid}: {error}") from error
    if done.returncode == _TOO_OLD:
        raise CannotAttach(f"process {pid} has a Python before 3.14: look at it from outside, without --record")
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"its Python ended with exit code {done.returncode}"]
        raise CannotAttach(f"nothing can be put into process {pid}: {reason[0]}")


def record(
    pid: int,
    directory: Path,
    duration_s: float,
    on_poll: Callable[[Session], None],
    *,
    execute: Callable[[int, Path], None] = remote_exec,
    patience_s: float = ANSWER_PATIENCE_S,
) -> Observation:
    """Record a process and its descendants from inside, for so long or until it ends.

    Args:
        pid: the program, or the launcher of its ranks.
        directory: takes the recordings.
        duration_s: how long, seconds.
        on_poll: called some times a second.
        execute: has a process run a script.
        patience_s: for the main threads to run it, seconds.

    Raises:
        CannotAttach: there is no such process, nothing can be put into it, or its main thread did not answer.
    """
    pids = _pythons(pid)
    scripts = _Scripts(directory, execute, patience_s)
    try:
        _need_answers(scripts.run(BEGIN, pids), directory, patience_s)
        session = Session(pid, directory)
        while time.monotonic() - session.began < duration_s and psutil.pid_exists(pid):
            session.poll()
            on_poll(session)
            time.sleep(session.poll_s)
        return session.finish()
    finally:
        with contextlib.suppress(CannotAttach):  # all have just ended
            scripts.run(END, [each for each in pids if psutil.pid_exists(each)])
        scripts.close()


class _Scripts:
    """What processes are to run: a script each, which removes itself once it has been run.

    Args:
        directory: takes the recordings.
        execute: has a process run a script.
        patience_s: for them to do so, seconds.
    """

    def __init__(self, directory: Path, execute: Callable[[int, Path], None], patience_s: float):
        self._directory = directory
        self._execute = execute
        self._patience_s = patience_s
        self._folder = Path(tempfile.mkdtemp(prefix="unstall-attach-"))

    def run(self, action: str, pids: Sequence[int]) -> list[int]:
        """Have processes begin or end their recording; those that have done so before patience ended.

        Of several, some wait in one call for ever, as multiprocessing's helpers do: once one has answered, the others
        are not waited for long. They may still come to it.
        """
        scripts: dict[int, Path] = {}
        refused: list[CannotAttach] = []
        for pid in pids:
            script = self._write(action, pid)
            try:
                self._execute(pid, script)
                scripts[pid] = script
            except CannotAttach as error:  # a tool that it has started may be of an older Python
                script.unlink()
                refused.append(error)
        if not scripts and refused:
            raise refused[0]
        deadline = time.monotonic() + self._patience_s
        while True:
            waiting = [pid for pid, script in scripts.items() if script.exists()]
            if len(waiting) < len(scripts):
                deadline = min(deadline, time.monotonic() + OTHER_ANSWERS_S)
            if not any(map(psutil.pid_exists, waiting)) or time.monotonic() > deadline:
                return [pid for pid in scripts if pid not in waiting]
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Remove them. One that ends a recording stays until its thread comes to it."""
        for script in self._folder.glob(f"{BEGIN}-*"):  # Python keeps one script to run: that is the other one by now
            script.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _write(self, action: str, pid: int) -> Path:
        script = self._folder / f"{action}-{pid}.py"
        names = {
            "source": str(BOOTSTRAP / "sitecustomize.py"),
            "folder": str(BOOTSTRAP),
            "errors": str(self._directory / ERRORS_NAME),
            "arguments": [action, str(self._directory), RecordingOptions().for_child()],
            "script": str(script),
        }
        # One expression: it is run in the program's ``__main__``, where it must leave no name.
        script.write_text(f"exec({_IN_THE_PROGRAM!r}, {names!r})\n")
        return script


def _pythons(pid: int) -> list[int]:
    """The process and its descendants, as far as they are Pythons within reach. Raises CannotAttach where none is."""
    read_command(pid)
    found = [each for each in process_tree(pid) if interpreter.is_python(_executable(each))]
    if not found:
        raise CannotAttach(f"process {pid} is no Python, and has started none")
    obstacles = {each: _obstacle(each) for each in found}
    if None not in obstacles.values():
        raise CannotAttach(obstacles[found[0]])
    return [each for each, obstacle in obstacles.items() if obstacle is None]


def _executable(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _obstacle(pid: int) -> str | None:
    """Why nothing should be put into a process."""
    try:
        return _obstacle_to_a_living_one(pid)
    except OSError as error:
        return f"nothing can be put into process {pid}: {error.strerror}"


def _obstacle_to_a_living_one(pid: int) -> str | None:
    if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # its Python would run as this user, and its script as that one
        return f"process {pid} belongs to another user: record it as that user"
    if os.stat(f"/proc/{pid}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino:
        return f"process {pid} is in a container: run this inside it"
    if RUN_DIR in variables(pid):
        return f"process {pid} is under `unstall run` already: see `unstall watch`"
    obstacle = ptrace.obstacle(pid)
    return f"nothing can be put into process {pid}: {obstacle}" if obstacle is not None else None


def _need_answers(answered: Sequence[int], directory: Path, patience_s: float) -> None:
    """Raises CannotAttach where no process records."""
    if not answered:
        raise CannotAttach(
            f"the main thread did not answer within {patience_s:.0f} s: it is inside one long call; "
            "look at it from outside, without --record"
        )
    errors = directory / ERRORS_NAME
    if errors.exists() and not any(directory.glob("rec-*.bin")):
        raise CannotAttach(errors.read_text().strip().splitlines()[0])
