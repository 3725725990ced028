"""The baseline's code beside the user's own: a git worktree of a revision, with untracked files linked in."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from unstall.repeat.revision import git
from unstall.repeat.thresholds import MOST_LINKS

_NOT_LINKED = (".unstall", "__pycache__", ".git", ".pytest_cache", ".mypy_cache", ".ruff_cache")
_SUBMODULE = "160000 "  # git's mode of one in its index


class WorktreeError(Exception):
    """There is no such revision, or git cannot check it out; one line that says what to do."""


@dataclass(frozen=True)
class Worktree:
    """A revision of the repository whose top is ``top``, checked out at ``path``."""

    path: Path
    top: Path
    commit: str
    linked: frozenset[Path] = frozenset()
    """Untracked files and folders, relative to the top: the same ones on both sides."""

    def twin(self, path: Path) -> Path:
        """The path in the worktree of a path in the repository; one outside the repository stays."""
        absolute = Path(os.path.abspath(path))
        return self.path / absolute.relative_to(self.top) if absolute.is_relative_to(self.top) else path

    def shares(self, path: Path) -> bool:
        """Whether a path in the repository is linked, or lies in a linked folder."""
        absolute = Path(os.path.abspath(path))
        if not absolute.is_relative_to(self.top):
            return False
        relative = absolute.relative_to(self.top)
        return not self.linked.isdisjoint((relative, *relative.parents))

    @property
    def shared_code(self) -> list[str]:
        """The linked Python files and packages."""
        return sorted(
            str(path) for path in self.linked if path.suffix == ".py" or (self.top / path / "__init__.py").is_file()
        )

    def words(self, words: Sequence[str]) -> list[str]:
        """A command's words, absolute paths into the repository turned into those of the worktree."""
        return [str(self.twin(Path(word))) if os.path.isabs(word) else word for word in words]

    def environment(self, env: dict[str, str]) -> dict[str, str]:
        """An environment in which the repository's own packages are imported from the worktree."""
        sources = [str(self.twin(folder)) for folder in _editable_sources(self.top)]
        inherited = [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
        entries = [*(str(self.twin(Path(entry))) if os.path.isabs(entry) else entry for entry in inherited), *sources]
        return {**env, "PYTHONPATH": os.pathsep.join(entries)} if entries else env


@contextlib.contextmanager
def check_out(revision: str, folder: Path, into: Path) -> Iterator[Worktree]:
    """A worktree of ``revision`` of the repository that ``folder`` is in, made as ``into`` and removed at the end.

    Data, environments and other untracked files are links to the user's own, so that the program finds them.

    Raises:
        WorktreeError: no repository, no such revision, or git refuses.
    """
    top = git(folder, "rev-parse", "--show-toplevel")
    if not top:
        raise WorktreeError(f"{folder} is not in a git repository: give a recorded run as the baseline instead")
    commit = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if not commit:
        raise WorktreeError(f"no revision and no recorded run is called {revision!r} (a shallow clone may lack it)")
    try:
        # The repository's hooks are for the person's own checkouts.
        _git(Path(top), "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--quiet", str(into), commit)
        linked = _link_unknown(Path(top), into) | _link_submodules(Path(top), into)
        yield Worktree(into, Path(top), commit, linked)
    finally:
        shutil.rmtree(into, ignore_errors=True)
        git(Path(top), "worktree", "prune")


def _git(folder: Path, *words: str) -> str:
    """What git prints, without a time limit; file names decoded as Python does."""
    try:
        done = subprocess.run(["git", *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
    except OSError as error:
        raise WorktreeError(f"git cannot be started: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise WorktreeError(f"git cannot make a worktree: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return os.fsdecode(done.stdout)


def _link_unknown(top: Path, into: Path) -> frozenset[Path]:
    """Link untracked files, ignored or not, unless the worktree has something of that name; returns them."""
    linked = set()
    listed = _git(top, "ls-files", "--others", "--directory", "-z").split("\0")
    for name in listed[:MOST_LINKS]:
        relative = Path(name.rstrip("/"))
        link = into / relative
        if not name or any(part in _NOT_LINKED for part in relative.parts) or os.path.lexists(link):
            continue
        if link.parent.is_dir():
            link.symlink_to(top / relative)
            linked.add(relative)
    return frozenset(linked)


def _link_submodules(top: Path, into: Path) -> frozenset[Path]:
    """Link the submodules, whose folders a new worktree leaves empty; returns them."""
    linked = set()
    for entry in _git(top, "ls-files", "--stage", "-z").split("\0"):
        facts, _, name = entry.partition("\t")
        if facts.startswith(_SUBMODULE) and (into / name).is_dir() and not any((into / name).iterdir()):
            (into / name).rmdir()
            (into / name).symlink_to(top / name)
            linked.add(Path(name))
    return frozenset(linked)


def _editable_sources(top: Path) -> list[Path]:
    """Where the packages lie that are installed as links into this repository (``pip install -e``)."""
    sources = []
    for distribution in importlib.metadata.distributions():
        try:
            facts = json.loads(distribution.read_text("direct_url.json") or "{}")
        except (OSError, ValueError):
            continue
        url = urlparse(facts.get("url", ""))
        project = Path(unquote(url.path))
        if facts.get("dir_info", {}).get("editable") and url.scheme == "file" and project.is_relative_to(top):
            sources.append(project / "src" if (project / "src").is_dir() else project)
    return sources
