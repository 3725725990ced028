"""Where unstall keeps what it knows of a project: runs and ledger, out of the sight of the project's programs.

A program that lists its own folder (``ImageFolder``, ``rglob("*.json")``) must find the same with unstall as without.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from unstall import environment

IN_PROJECT = ".unstall"
"""The folder of the working directory that is used instead, if it is there already."""
_NAME_CHARACTERS = 40
_HASH_DIGITS = 12


def home(project: Path | None = None) -> Path:
    """The folder that holds ``runs/`` and the ledger of a project, which is a working directory, by default this one.

    It is the one that ``UNSTALL_STATE`` names; else ``.unstall`` in the project, where that exists; else one of the
    project's own in the user's state directory (XDG Base Directory Specification).
    """
    project = project or Path.cwd()
    if named := os.environ.get(environment.STATE):
        return project / os.path.expanduser(named)
    if (project / IN_PROJECT).is_dir():
        return project / IN_PROJECT
    base = os.environ.get("XDG_STATE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.local/state")
    if not os.path.isabs(base):  # the user has no home
        return fallback(project)
    return Path(base) / "unstall" / _name(project)


def fallback(project: Path | None = None) -> Path:
    """What stands in for :func:`home` where that takes no file: a folder of this user in the temporary one."""
    return Path(tempfile.gettempdir()) / f"unstall-{os.getuid()}" / _name(project or Path.cwd())


def writable(project: Path | None = None) -> Path:
    """:func:`home` if files can be made there, else :func:`fallback`. Whether a recording fits is another question."""
    return next((folder for folder in (home(project), fallback(project)) if _takes_files(folder)), home(project))


def _name(project: Path) -> str:
    """Readable, and another for each path."""
    path = project.resolve()
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:_HASH_DIGITS]
    return f"{path.name[:_NAME_CHARACTERS] or 'root'}-{digest}"


def _takes_files(folder: Path) -> bool:
    """Whether a folder, or what is there of the way to it, can be written to."""
    existing = next((path for path in (folder, *folder.parents) if os.path.exists(path)), folder)
    return existing.is_dir() and os.access(existing, os.W_OK)
