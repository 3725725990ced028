"""Where a run's recordings lie: ``.unstall/runs/<id>`` in the working directory, or elsewhere if that takes none."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

_NEEDED_BYTES = 4 << 20


@dataclass
class RunDir:
    """A fresh directory of this run's own."""

    id: str
    path: Path
    note: str | None
    """Why it is not in the working directory, if it is not."""

    def discard_recordings(self) -> None:
        """Remove what the report was made from; the directory too when nothing else is in it."""
        for pattern in ("rec-*.bin", "info-*.jsonl", "bootstrap-error.txt", "stacks-*.txt"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        try:
            self.path.rmdir()
        except OSError:
            pass


def make(folder: Path | None = None) -> RunDir:
    """Make the run directory; OSError only when not even the temporary directory takes a file."""
    started = datetime.now(timezone.utc)
    run_id = f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    home = (folder or Path.cwd()) / ".unstall"
    try:
        path = _make(home / "runs" / run_id)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        return RunDir(run_id, path, None)
    except OSError as error:
        path = _make(Path(tempfile.gettempdir()) / f"unstall-{os.getuid()}" / run_id)
        return RunDir(
            run_id,
            path,
            f"{home} cannot hold the recording ({error.strerror}): it went to {path.parent}",
        )


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
            try:
                parent.rmdir()
            except OSError:
                pass
        raise
    return path
