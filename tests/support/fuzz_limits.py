"""The command, alone or many times in a process, with the memory and the time that any file of a stranger must do with, and what must hold of its end."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import fuzz_worker
import psutil
from fuzz_worker import BYTES

SECONDS = 10
"""Of a core: on a machine that others use, seconds of the clock say nothing."""
_HANGS_AFTER_S = 120
CODES = (0, 1, 2)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def unstall(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a folder; it is ended by SIGXCPU where it takes too long, subprocess.TimeoutExpired where it
    hangs.
    """
    return subprocess.run(
        [sys.executable, "-m", "unstall", *arguments],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_HANGS_AFTER_S,
        preexec_fn=_limit,
    )


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def trouble(code: int, stdout: str, stderr: str) -> str:
    """What is wrong with how the command ended; empty if nothing is."""
    if code not in CODES:
        return f"exit code {code}"
    if "Traceback" in stderr:
        return "a traceback"
    if match := CONTROL.search(stdout + stderr):
        return f"the control character {match[0]!r} on the terminal"
    return ""


def ended(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the command, and see that it ended as it may."""
    process = unstall(arguments, folder)
    wrong = trouble(process.returncode, process.stdout.decode(), process.stderr.decode())
    assert not wrong, f"{wrong}: unstall {' '.join(arguments)}\n{process.stdout!r}\n{process.stderr.decode()}"
    return process


def refused(arguments: Sequence[str], folder: Path) -> str:
    """The one line that refuses the file."""
    process = ended(arguments, folder)
    lines = process.stderr.decode().splitlines()
    assert process.returncode == 2 and len(lines) == 1, process
    return lines[0]


class Worker:
    """A process for many commands. One that fails in it counts only if it fails in a process of its own too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None

    def check(self, arguments: Sequence[str]) -> None:
        """Run a command in the folder, and see that it ended as it may."""
        before = _beside(self.folder)
        wrong = self._wrong(arguments)
        if wrong:
            self.stop()
            if (again := self._wrong(arguments)) or arguments[0].startswith("@"):
                assert not again, f"{again}: {arguments}"
            else:
                ended(arguments, self.folder)
        assert _beside(self.folder) == before, f"{arguments} changed something outside of its folder"

    def stop(self) -> None:
        """End the process; the next command gets a fresh one."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _wrong(self, arguments: Sequence[str]) -> str:
        process = self._started()
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps([list(arguments), str(self.folder)]) + "\n")
        process.stdin.flush()
        if not self._has_answered(process):
            self.stop()
            return f"no end after {SECONDS} s"
        line = process.stdout.readline()
        if not line:
            self.stop()
            return "the process died"
        code, stdout, stderr = json.loads(line)
        wrong = trouble(code, stdout, stderr)
        return f"{wrong}\n{stderr[-3000:]}" if wrong else ""

    def _has_answered(self, process: subprocess.Popen[str]) -> bool:
        """Whether the answer came before it was too late."""
        watched = psutil.Process(process.pid)
        used, began = sum(watched.cpu_times()[:2]), time.monotonic()
        while not select.select([process.stdout], [], [], 1.0)[0]:
            too_long = sum(watched.cpu_times()[:2]) - used > SECONDS
            if too_long or time.monotonic() - began > _HANGS_AFTER_S:
                return False
        return True

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, fuzz_worker.__file__],
                env=_environment(self.folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._process


def _environment(folder: Path) -> dict[str, str]:
    # A thread of OpenBLAS reserves address space that it never uses.
    home = {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder / "home")}
    return {**os.environ, **home, "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"}


def _beside(folder: Path) -> list[tuple[str, int, int]]:
    """The files beside a folder, with size and time of change."""
    files = [path for path in folder.parent.iterdir() if path != folder]
    return sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
