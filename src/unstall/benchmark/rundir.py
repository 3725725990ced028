"""Where a run's recordings lie: ``.unstall/runs/<id>`` in the working directory, or elsewhere if that takes none."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

_NEEDED_BYTES = 4 << 20


@dataclass(frozen=True)
class RunDir:
    """A fresh directory of this run's own."""

    id: str
    path: Path
    note: str | None
    """Why it is not in the working directory, if it is not."""

    def discard_recordings(self) -> None:
        """Remove what the report was made from; the directory too when nothing else is in it."""
        for pattern in ("rec-*.bin", "info-*.jsonl", "bootstrap-error.txt", "stacks-*.txt", "gpu-*.json"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def make(folder: Path | None = None) -> RunDir:
    """Make the run directory; OSError only when not even the temporary directory takes a file."""
    run_id = new_id()
    runs, elsewhere = _homes(folder)
    here = runs.parent
    try:
        path = _make(runs / run_id)
        hide(here)
        return RunDir(run_id, path, None)
    except OSError as error:
        path = _make(elsewhere / run_id)
        return RunDir(
            run_id,
            path,
            f"{here} cannot hold the recording ({error.strerror}): it went to {path.parent}",
        )


def new_id() -> str:
    """A name for a run that begins now: the time in UTC, and six hex digits that tell apart those of one second.

    Half of these are the time too, in 4096ths of the second: sorted by name, runs are in the order of their beginning.
    """
    now = datetime.now(timezone.utc)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond * 4096 // 1_000_000:03x}{secrets.randbelow(4096):03x}"


def hide(home: Path) -> None:
    """Keep what unstall knows out of the user's version control."""
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def find(name: str, folder: Path | None = None, *, finished: bool = False) -> Path:
    """The directory of a run that a person names, or the file.

    ``name`` is a run's id, the beginning of one or its last six digits, ``last``, or the path of a run's directory,
    a report or a recording. Raises LookupError, with one line for the person, where it is none of them or several.

    Args:
        name: what the person typed.
        folder: where ``.unstall`` is; the working directory if not given.
        finished: leave out runs that have no report yet.
    """
    here, elsewhere = _homes(folder)
    # Elsewhere are runs of other directories as well: the last of them is meant only where this one can hold none.
    takes_none = not os.access(folder or Path.cwd(), os.W_OK)
    for home in (here, elsewhere) if takes_none or name != "last" else (here,):
        runs = _runs(home, finished)
        meant = runs[-1:] if name == "last" else [path for path in runs if path.name == name]
        meant = meant or [path for path in runs if name and _abbreviates(name, path.name)]
        if len(meant) > 1:
            raise LookupError(f"{name} is short for {len(meant)} runs: give more of the id")
        if meant:
            return meant[0]
    if name == "last":
        raise LookupError("no run is kept here yet; make one with: unstall run train.py")
    path = (folder or Path.cwd()) / name
    if name and path.exists():
        return path
    raise LookupError(f"no run and no file is called {name!r}; `unstall history` lists the runs kept here")


def list_runs(folder: Path | None = None, *, finished: bool = False) -> list[Path]:
    """The directories of the runs that are kept in the working directory, or ``folder``, oldest first."""
    return _runs(_homes(folder)[0], finished)


def _runs(home: Path, finished: bool) -> list[Path]:
    if not home.is_dir():
        return []
    runs = [path for path in home.iterdir() if path.is_dir() and (not finished or (path / "report.json").exists())]
    return sorted(runs, key=lambda path: (path.name[:15], path.stat().st_mtime))


def _abbreviates(name: str, run_id: str) -> bool:
    return run_id.startswith(name) or run_id.endswith(f"-{name}")


def remove(path: Path) -> None:
    """Remove a run's directory with all that is in it, and those above it that unstall made and that are now empty."""
    shutil.rmtree(path, ignore_errors=True)
    for above in (path.parent, path.parent.parent):
        if [entry.name for entry in above.iterdir()] in ([], [".gitignore"]) and above.name in ("runs", ".unstall"):
            shutil.rmtree(above, ignore_errors=True)


def home(folder: Path | None = None) -> Path:
    """Where unstall keeps what it knows of the programs in a folder, the working directory if not given."""
    return _homes(folder)[0].parent


def elsewhere() -> Path:
    """Where runs of this user are kept whose working directory takes no file."""
    return _homes(None)[1]


def _homes(folder: Path | None) -> tuple[Path, Path]:
    """Where runs are: in the working directory, and where they go if that takes none."""
    return (folder or Path.cwd()) / ".unstall" / "runs", Path(tempfile.gettempdir()) / f"unstall-{os.getuid()}"


def _make(path: Path) -> Path:
    """Make a directory and see that it takes a recording's first megabytes."""
    above = [parent for parent in (path.parent, path.parent.parent) if not parent.exists()]
    try:
        path.mkdir(parents=True, mode=0o700)
        probe = path / "probe"
        with probe.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _NEEDED_BYTES)
        probe.unlink()
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        for parent in above:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    return path
