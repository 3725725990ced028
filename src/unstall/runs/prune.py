"""``unstall prune``: bound the space that recordings take. The history itself is kept."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from unstall.benchmark import rundir
from unstall.benchmark.archive import REPORT_NAME

_DEFAULT_MAX_BYTES = 10**9
_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_ABANDONED_S = 86400.0  # without a report and untouched for so long, a run was killed


class ArchivedRun(NamedTuple):
    """A run's directory: what it takes, and when it was last written to, seconds since the epoch."""

    path: Path
    bytes: int
    written: float


class Pruned(NamedTuple):
    """What was removed, or would be."""

    runs: int
    """Before."""
    removed: int
    freed_bytes: int
    left_bytes: int
    problems: list[str]
    """What could not be removed, and why."""


def prune(*, keep: int | None, older_than_s: float | None, max_bytes: int | None, dry_run: bool) -> Pruned:
    """Remove the recordings that any of the limits excludes; down to a gigabyte if none is given."""
    if keep is None and older_than_s is None and max_bytes is None:
        max_bytes = _DEFAULT_MAX_BYTES
    runs = kept_runs()
    removed, problems = [], []
    for run in choose(runs, keep=keep, older_than_s=older_than_s, max_bytes=max_bytes):
        try:
            if not dry_run:
                shutil.rmtree(run.path)
            removed.append(run)
        except OSError as error:
            problems.append(f"{run.path} was not removed: {error.strerror or error}")
    freed = sum(run.bytes for run in removed)
    return Pruned(len(runs), len(removed), freed, sum(run.bytes for run in runs) - freed, problems)


def kept_runs(project: Path | None = None) -> list[ArchivedRun]:
    """The runs of a project that are over, oldest first. Links and whatever is no run's directory are not."""
    runs = []
    for path in rundir.list_runs(project):
        if path.is_symlink() or not _RUN_ID.fullmatch(path.name):
            continue
        with contextlib.suppress(OSError):  # it may end, or be removed by another, at this moment
            files = [file.lstat() for file in path.rglob("*")]
            written = max((file.st_mtime for file in files), default=path.stat().st_mtime)
            if (path / REPORT_NAME).exists() or time.time() - written > _ABANDONED_S:
                runs.append(ArchivedRun(path, sum(file.st_size for file in files), written))
    return sorted(runs, key=lambda run: (run.path.name[:15], run.written))


def choose(
    runs: Sequence[ArchivedRun],
    *,
    keep: int | None = None,
    older_than_s: float | None = None,
    max_bytes: int | None = None,
    now: float | None = None,
) -> list[ArchivedRun]:
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
