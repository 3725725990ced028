"""``unstall prune``: bound the space that recordings take."""

from __future__ import annotations

import shutil
from typing import NamedTuple

from unstall.benchmark import rundir
from unstall.repeat import pruning

_DEFAULT_MAX_BYTES = 10**9


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
    runs = pruning.kept_runs(rundir.home())
    gone, problems = [], []
    for run in pruning.choose(runs, keep=keep, older_than_s=older_than_s, max_bytes=max_bytes):
        try:
            if not dry_run:
                shutil.rmtree(run.path)
            gone.append(run)
        except OSError as error:
            problems.append(f"{run.path} was not removed: {error.strerror or error}")
    freed = sum(run.bytes for run in gone)
    return Pruned(len(runs), len(gone), freed, sum(run.bytes for run in runs) - freed, problems)
