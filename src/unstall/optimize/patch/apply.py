"""Where the patch goes: checks before it is written, and its application to the user's files with a backup."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from unstall.optimize.program import Program, repository
from unstall.optimize.source.files import Sources

_NOTEBOOK = re.compile(rb"^# ?In\s?\[[ \d]*\]:|^# ?%%|get_ipython\(\)", re.MULTILINE)


def remarks(program: Program, sources: Sources) -> list[str]:
    """What a person should know before they apply the patch, a line each."""
    paths = [path for path, _, _ in sources.differing()]
    if not paths:
        return []
    notes = [
        f"{path.relative_to(folder)} is of a package in {folder}: the patch is against its source, to send upstream; "
        "--apply changes this copy"
        for path in paths
        if (folder := program.folder_of(path)) is not None and folder != program.root
    ]
    paths = [path for path in paths if program.folder_of(path) == program.root]
    top = repository(program.root)
    if not paths:
        return notes
    if top is None:
        notes.append(f"the script is not in a git repository: apply the patch from {program.root}")
    else:
        dirty = changed_since_commit(top, paths)
        if dirty:
            names = ", ".join(path.name for path in dirty)
            notes.append(f"{names} has changes that are not committed: the patch is for the file as it is now")
    exported = [path.name for path in paths if path.exists() and _NOTEBOOK.search(path.read_bytes())]
    if exported:
        notes.append(f"{', '.join(exported)} comes from a notebook: the patch changes the file, not the notebook")
    return notes


def changed_since_commit(top: Path, paths: Iterable[Path]) -> list[Path]:
    """Which of these files git says differ from the last commit, or does not know; none where git cannot be asked."""
    changed = []
    for path in paths:
        try:
            answer = subprocess.run(
                ["git", "-C", str(top), "status", "--porcelain", "--", str(path)],
                capture_output=True, timeout=20, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return []
        if answer.stdout.strip():
            changed.append(path)
    return changed


def apply(sources: Sources) -> list[tuple[Path, Path | None]]:
    """Write the changed files in their places, each with a backup beside it: (file, backup). Raises OSError.

    A new file has no backup.

    A file is replaced in one step, so a crash leaves the old one or the new one, never half of one.
    """
    done: list[tuple[Path, Path | None]] = []
    for path, current, wanted in sources.differing():
        backup = _free_name(path) if path.exists() else None
        if backup is not None:
            backup.write_bytes(current)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.new")
        try:
            draft.write_bytes(wanted)
            if backup is not None:
                os.chmod(draft, path.stat().st_mode & 0o7777)
            os.replace(draft, path.resolve())
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        done.append((path, backup))
    return done


def _free_name(path: Path) -> Path:
    """``train.py.orig``, or with a number when that is taken."""
    names = [path.with_name(f"{path.name}.orig"), *(path.with_name(f"{path.name}.orig{n}") for n in range(1, 1000))]
    return next(name for name in names if not name.exists())
