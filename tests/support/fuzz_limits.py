"""The command with the memory and the time that any file of a stranger must do with, and what must hold of its end."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SECONDS = 10
BYTES = 1 << 30
CODES = (0, 1, 2)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def unstall(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a folder; subprocess.TimeoutExpired where it hangs."""
    # A thread of OpenBLAS reserves address space that it never uses.
    environment = {**os.environ, "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1", "XDG_STATE_HOME": str(folder / "state")}
    return subprocess.run(
        [sys.executable, "-m", "unstall", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES)),
    )


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
