"""The two sides of a proof, as the files in which they differ from the working tree."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unstall.prove import thresholds

_SKIPPED = {".git", ".unstall", ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


class TreeError(Exception):
    """There is no such side; the message is one line that says why."""


Files = Mapping[Path, bytes | None]
"""Absolute path → content; None for a file that is not to be there."""


def content_of(files: Files, path: str | Path) -> bytes:
    """What a side has at a path: its own, or what lies there. Raises OSError, also where it is to have nothing."""
    path = Path(path)
    content = files[path] if path in files else path.read_bytes()
    if content is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return content


@dataclass(frozen=True)
class Sides:
    """The original and the changed program."""

    original: Files = field(default_factory=dict)
    changed: Files = field(default_factory=dict)
    label: str = ""

    @property
    def differing(self) -> Iterator[tuple[Path, bytes | None, bytes | None]]:
        """(path, the original's content, the changed program's) of every file that differs."""
        for path in sorted({*self.original, *self.changed}):
            before, after = (files[path] if path in files else _read(path) for files in (self.original, self.changed))
            if before != after:
                yield path, before, after


def of_patch(patch: Path, folder: Path) -> Sides:
    """The working tree, and the same with a patch applied, as ``git apply`` does. Raises TreeError."""
    content = _absolute(patch)
    root = Path(_git(folder, "rev-parse", "--show-toplevel", quiet=True) or folder)
    names = list(_names_in(content, root))
    if not names:
        raise TreeError(f"{patch} is not a patch that changes a file")
    with tempfile.TemporaryDirectory(prefix="unstall-patch-") as scratch:
        copy = Path(scratch) / "tree"
        copy.mkdir()
        for name in names:
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes((root / name).read_bytes())
        _apply(content, copy)
        if any((copy / name).is_symlink() for name in names):
            raise TreeError(f"{patch} makes a symbolic link: only files can be judged")
        changed = {root / name: _read(copy / name) for name in names}
    return Sides(changed={path: content for path, content in changed.items() if content != _read(path)},
                 label=f"{patch.name} on the working tree")  # fmt: skip


def against(other: str, folder: Path) -> Sides:
    """The working tree against a revision or a folder, or one revision against another (``A..B``). Raises TreeError."""
    if ".." in other and not Path(other).is_dir():
        before, _, after = other.partition("..")
        after = after.lstrip(".") or "HEAD"
        return Sides(_of_revision(before or "HEAD", folder), _of_revision(after, folder), f"{after} against {before}")
    if Path(other).is_dir() and not _is_revision(other, folder):
        return Sides(original=_of_folder(Path(other), folder), label=f"the working directory against {other}")
    return Sides(original=_of_revision(other, folder), label=f"the working tree against {other}")


def _of_revision(revision: str, folder: Path) -> Files:
    """The tracked files that differ between a revision and the working tree, as the revision has them."""
    top = _git(folder, "rev-parse", "--show-toplevel", quiet=True)
    if not top:
        raise TreeError(f"{folder} is not in a git repository, and there is no folder {revision!r}")
    if not _is_revision(revision, folder):
        raise TreeError(f"no revision and no folder is called {revision!r} (a shallow clone may lack it)")
    root = Path(top)
    names = _git(root, "diff", "--name-only", "--no-renames", "--ignore-submodules", "-z", revision, "--").split("\0")
    files: dict[Path, bytes | None] = {}
    for name in filter(None, names):
        is_tracked = _git(root, "ls-tree", "--name-only", revision, "--", name)
        files[root / name] = _git_bytes(root, "show", f"{revision}:{name}") if is_tracked else None
    return files


def _of_folder(other: Path, folder: Path) -> Files:
    """The files that differ between a folder and the working directory, as the folder has them."""
    theirs, ours = set(_files(other)), set(_files(folder))
    files: dict[Path, bytes | None] = {folder / name: None for name in ours - theirs}
    for name in theirs:
        content = _read(other / name)
        if content != _read(folder / name):
            files[folder / name] = content
    return files


def _files(folder: Path) -> Iterator[str]:
    count = 0
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            path = Path(where, name)
            if path.suffix == ".pyc" or path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > thresholds.MOST_FILES:
                raise TreeError(f"{folder} holds more than {int(thresholds.MOST_FILES)} files: keep data elsewhere")
            yield str(path.relative_to(folder))


def _names_in(content: Path, folder: Path) -> Iterator[str]:
    """The files that a patch changes, old and new names."""
    fields = _git(folder, "apply", "--numstat", "-z", str(content)).split("\0")
    for entry in filter(None, fields):
        _, tab, rest = entry.partition("\t")
        name = rest.partition("\t")[2] if tab else entry  # a rename's two names stand alone
        if name:
            yield name


def _apply(patch: Path, folder: Path) -> None:
    _git_bytes(folder, "apply", str(patch), alone=True)


def _absolute(patch: Path) -> Path:
    if not patch.is_file():
        raise TreeError(f"no such file: {patch}")
    return patch.resolve()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TreeError(f"{path} cannot be read: {error.strerror}") from error


def _is_revision(name: str, folder: Path) -> bool:
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return bool(_git(folder, *words, quiet=True))


def _git(folder: Path, *words: str, quiet: bool = False) -> str:
    try:
        return os.fsdecode(_git_bytes(folder, *words)).strip("\n")
    except TreeError:
        if quiet:
            return ""
        raise


def _git_bytes(folder: Path, *words: str, alone: bool = False) -> bytes:
    """What git prints. ``alone``: as if no repository were around the folder. Raises TreeError."""
    around = {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)} if alone else {}
    command: Sequence[str] = ["git", "--no-optional-locks", *words]
    try:
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **around}, stdin=subprocess.DEVNULL, capture_output=True
        )
    except OSError as error:
        raise TreeError(f"git cannot be started: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise TreeError(f"git {words[0]}: {lines[0].removeprefix('error: ') if lines else 'failed'}")
    return done.stdout
