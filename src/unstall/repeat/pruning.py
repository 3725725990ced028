"""Which recordings may go, so that ``.unstall`` does not grow without end. The history itself is kept."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unstall.benchmark.archive import REPORT_NAME

_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_ABANDONED_S = 86400.0  # without a report and untouched for so long, a run was killed


@dataclass(frozen=True)
class Kept:
    """A run's directory: what it takes, and when it was last written to, seconds since the epoch."""

    path: Path
    bytes: int
    written: float


def kept_runs(home: Path) -> list[Kept]:
    """The runs in ``.unstall/runs`` that are over, oldest first. Links and whatever is no run's directory are not."""
    runs = home / "runs"
    found = []
    for path in runs.iterdir() if runs.is_dir() else ():
        if path.is_symlink() or not path.is_dir() or not _RUN_ID.fullmatch(path.name):
            continue
        with contextlib.suppress(OSError):  # it may end, or be removed by another, at this moment
            files = [file.lstat() for file in path.rglob("*")]
            written = max((file.st_mtime for file in files), default=path.stat().st_mtime)
            if (path / REPORT_NAME).exists() or time.time() - written > _ABANDONED_S:
                found.append(Kept(path, sum(file.st_size for file in files), written))
    return sorted(found, key=lambda run: (run.path.name[:15], run.written))


def choose(
    runs: Sequence[Kept],
    *,
    keep: int | None = None,
    older_than_s: float | None = None,
    max_bytes: int | None = None,
    now: float | None = None,
) -> list[Kept]:
    """Those to remove, oldest first: beyond the newest ``keep``, older than so long, or too much for ``max_bytes``.

    A run goes if any of the limits that are given says so.
    """
    now = time.time() if now is None else now
    removed, total = [], 0
    for rank, run in enumerate(reversed(runs)):
        total += run.bytes
        too_many = keep is not None and rank >= keep
        too_old = older_than_s is not None and now - run.written > older_than_s
        too_large = max_bytes is not None and total > max_bytes
        if too_many or too_old or too_large:
            removed.append(run)
            total -= run.bytes
    return removed[::-1]
