"""Which code a run was of, as git knows it."""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from unstall.repeat.thresholds import GIT_PATIENCE_S


@dataclass(frozen=True)
class Revision:
    """The state of a working tree; empty outside a repository."""

    project: str
    """What the runs of one project have in common: where the repository comes from, or the folder's name."""
    commit: str | None = None
    changes: str | None = None
    """Twelve hex digits that stand for the uncommitted changes of tracked files; None for a clean tree."""

    @property
    def dirty(self) -> bool:
        return self.changes is not None


def of(folder: Path) -> Revision:
    """The revision checked out in ``folder``."""
    top = git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return Revision(project=folder.resolve().name)
    origin = git(folder, "config", "--get", "remote.origin.url")
    changes = _git_bytes(folder, "diff", "HEAD", "--no-ext-diff", "--no-textconv", "--binary")
    return Revision(
        project=_tidy(origin) if origin else Path(top).name,
        commit=git(folder, "rev-parse", "--verify", "--quiet", "HEAD") or None,
        changes=hashlib.sha256(changes).hexdigest()[:12] if changes else None,
    )


def between(folder: Path, before: str, after: str) -> str | None:
    """What lies between two commits, as "3 commits, 2 files changed, ..."; None if they are not known here."""
    if not all(re.fullmatch(r"[0-9a-f]{7,64}", commit) for commit in (before, after)) or before == after:
        return None
    count = git(folder, "rev-list", "--count", f"{before}..{after}")
    if not count:
        return None
    changes = git(folder, "diff", "--shortstat", before, after) or "no file changed"
    return f"{count} {'commit' if count == '1' else 'commits'}, {changes}"


def git(folder: Path, *words: str) -> str:
    """What git answers on stdout; empty if it fails, is not there, or takes too long."""
    return _git_bytes(folder, *words).decode(errors="replace").strip()


def _git_bytes(folder: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GIT_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _tidy(origin: str) -> str:
    """``host/owner/name`` of a remote, however it is written; without user name or token."""
    path = re.sub(r"^[a-z+]+://", "", origin)
    path = re.sub(r"^[^/@]*@", "", path).replace(":", "/", 1)
    return path.removesuffix("/").removesuffix(".git")
