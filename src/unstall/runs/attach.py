"""``unstall attach``: a verdict on a program that runs already."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark import attached, injection
from unstall.benchmark.launcher import ProgramExit, RecordingOptions
from unstall.runs.errors import refusing
from unstall.runs.record import EndedProgram, RunRequest
from unstall.runs.workplace import make_directory

if TYPE_CHECKING:
    from unstall.benchmark.session import Session
    from unstall.records.attached import AttachReport
    from unstall.report.progress import Progress


def attach(pid: int, duration_s: float, progress: Progress) -> AttachReport:
    """Look at a process for at most so many seconds and judge it. Raises Refused where it cannot be read."""
    from unstall.diagnose.attached import judge

    with refusing(attached.CannotAttach), tempfile.TemporaryDirectory(prefix="unstall-attach-") as folder:
        look = attached.look(
            pid, Path(folder), duration_s, lambda s: progress.update(f"looking at {pid}, {s:.0f} s", 0, None)
        )
    return judge(look)


def record(pid: int, duration_s: float, on_poll: Callable[[Session], None]) -> EndedProgram:
    """Record a process from inside for so many seconds, as ``unstall run`` records what it starts.

    Raises Refused where nothing can be put into it.
    """
    with refusing(attached.CannotAttach):
        words = attached.read_command(pid)
        directory = make_directory()
        started = datetime.now(timezone.utc)
        try:
            observation = injection.record(pid, directory.path, duration_s, on_poll)
        except BaseException:
            directory.discard_recordings()
            raise
    outcome = ProgramExit(0, observation, goes_on=True)
    return EndedProgram(RunRequest(words, RecordingOptions()), directory, started, outcome)
