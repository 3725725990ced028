"""Where a run's recordings lie: ``runs/<id>`` in the project's state (state.py), or in what stands in for it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from unstall.benchmark import state
from unstall.benchmark.thresholds import NEEDED_BYTES

ERRORS_NAME = "bootstrap-error.txt"
"""The file of a recording in which the bootstrap says why it could not start."""


@dataclass(frozen=True)
class RunDir:
    """A fresh directory of this run's own."""

    id: str
    path: Path
    note: str | None
    """Why it is not where the project's other runs are, if it is not."""

    def discard_recordings(self) -> None:
        """Remove what the report was made from; the directory too when nothing else is in it."""
        for pattern in ("rec-*.bin", "info-*.jsonl", ERRORS_NAME, "stacks-*.txt", "gpu-*.json"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def make(folder: Path | None = None) -> RunDir:
    """Make the run directory of a program in ``folder``, the working directory if not given.

    OSError only when not even the temporary directory takes a file.
    """
    run_id = new_id()
    home, fallback = state.home(folder), state.fallback(folder)
    try:
        path = _make(home / "runs" / run_id)
        hide(home)
        return RunDir(run_id, path, None)
    except OSError as error:
        path = _make(fallback / "runs" / run_id)
        note = f"{home} cannot hold the recording ({error.strerror}): it went to {path.parent}"
        return RunDir(run_id, path, note)


def new_id() -> str:
    """A name for a run that begins now: the time in UTC, and six hex digits that tell apart those of one second.

    Half of these are the time too, in 4096ths of the second: sorted by name, runs are in the order of their beginning.
    """
    now = datetime.now(timezone.utc)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond * 4096 // 1_000_000:03x}{secrets.randbelow(4096):03x}"


def hide(home: Path) -> None:
    """Keep the state out of the user's version control: it may be in the project."""
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def find(name: str, folder: Path | None = None, *, finished: bool = False) -> Path:
    """The directory of a run that a person names, or the file.

    ``name`` is a run's id, the beginning of one or its last six digits, ``last``, or the path of a run's directory,
    a report or a recording. Raises LookupError, with one line for the person, where it is none of them or several.

    Args:
        name: what the person typed.
        folder: the project; the working directory if not given.
        finished: leave out runs that have no report yet.
    """
    runs = list_runs(folder, finished=finished)
    meant = runs[-1:] if name == "last" else [path for path in runs if path.name == name]
    meant = meant or [path for path in runs if name and _abbreviates(name, path.name)]
    if len(meant) > 1:
        raise LookupError(f"{name} matches {len(meant)} runs: give more of the id")
    if meant:
        return meant[0]
    if name == "last":
        raise LookupError("no run is kept here yet; make one with: unstall run train.py")
    path = (folder or Path.cwd()) / name
    if name and path.exists():
        return path
    raise LookupError(f"no run and no file is called {name!r}; `unstall history` lists the runs kept here")


def list_runs(folder: Path | None = None, *, finished: bool = False) -> list[Path]:
    """The directories of the runs of a project that are kept, oldest first, wherever there was room for them."""
    homes = {state.home(folder), state.fallback(folder)}
    runs = [path for home in homes if (home / "runs").is_dir() for path in (home / "runs").iterdir() if path.is_dir()]
    runs = [path for path in runs if not finished or (path / "report.json").exists()]
    return sorted(runs, key=lambda path: (path.name[:15], path.stat().st_mtime))


def _abbreviates(name: str, run_id: str) -> bool:
    return run_id.startswith(name) or run_id.endswith(f"-{name}")


def remove(path: Path) -> None:
    """Remove a run's directory with all that is in it."""
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):  # other runs are there
        path.parent.rmdir()


def _make(path: Path) -> Path:
    """Make a directory and see that it takes a recording's first megabytes."""
    above = [parent for parent in path.parents if not parent.exists()]
    try:
        path.mkdir(parents=True, mode=0o700)
        probe = path / "probe"
        with probe.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, NEEDED_BYTES)
        probe.unlink()
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        for parent in above:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    return path
