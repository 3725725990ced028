"""``unstall attach``: a verdict on a program that runs already."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark import attached
from unstall.runs.errors import refusing

if TYPE_CHECKING:
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
