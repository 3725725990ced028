"""The program to optimize: its command, its script, the folder its sources lie in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from unstall.benchmark import command
from unstall.child.user_files import is_user_file, package_of, within_packages


@dataclass(frozen=True)
class Program:
    """One command of the user's."""

    words: tuple[str, ...]
    """The command as typed."""
    line: tuple[str, ...]
    """The command as it is started."""
    script: Path | None
    """The main file, if it is a Python file of the user's."""
    root: Path
    """The repository's root, or the script's folder."""
    packages: frozenset[str] = frozenset()
    """Import names of packages outside of the root that may be changed as well."""

    def owns(self, path: Path) -> bool:
        """Whether a file is Python source that may be changed: the user's own under the root, or of a package named."""
        return path.suffix in (".py", ".pyw") and path.is_file() and self.folder_of(path) is not None

    def folder_of(self, path: Path) -> Path | None:
        """The folder that a file's path in the patch starts from: the root, or the one that holds its package."""
        if is_user_file(str(path)) and self.root in path.resolve().parents:
            return self.root
        return self.package_folder(path)

    def name_of(self, path: Path) -> str:
        """A file's path from that folder: what tells it from others, which may be called the same."""
        folder = self.folder_of(path)
        return str(path) if folder is None else os.path.relpath(path.resolve(), folder.resolve())

    def package_folder(self, path: Path) -> Path | None:
        """The folder that holds a file's package, installed or beside the program; None where no such one is named."""
        within = within_packages(str(path))
        if within is not None:
            return Path(within[0]) if package_of(str(path)) in self.packages else None
        for above in path.parents:
            if above.name in self.packages and (above / "__init__.py").is_file():
                return above.parent
        return None


def find(words: Sequence[str], packages: Iterable[str] = ()) -> Program:
    """The program of a command line, and the packages that may be changed with it.

    Raises :class:`command.CommandError` when there is nothing to start.
    """
    line = command.resolve(words)
    script = _script(list(words))
    start = script.parent if script else Path.cwd()
    names = frozenset(name.replace("-", "_") for name in packages)
    return Program(tuple(words), tuple(line), script, repository(start) or start, names)


def repository(folder: Path) -> Path | None:
    """The root of the git repository that holds a folder, if one does."""
    for above in (folder, *folder.parents):
        if (above / ".git").exists():
            return above
    return None


def _script(words: list[str]) -> Path | None:
    """The first word that is a Python file, or the file of ``-m module``."""
    if words[0] == "-m" and len(words) > 1:
        return _module(words[1])
    if Path(words[0]).is_dir():
        return (Path(words[0]) / "__main__.py").resolve()
    for index, word in enumerate(words):
        if Path(word).suffix in (".py", ".pyw") and Path(word).is_file():
            return Path(word).resolve()
        if word == "-m" and index and Path(words[index - 1]).name.startswith("python"):
            return _module(words[index + 1]) if index + 1 < len(words) else None
    return None


def _module(name: str) -> Path | None:
    """The file of a module, looked for where Python would, without importing its parents."""
    relative = Path(*name.split("."))
    for entry in ["", *sys.path]:
        base = Path(entry or ".")
        for candidate in (base / relative.with_suffix(".py"), base / relative / "__main__.py"):
            if candidate.is_file():
                return candidate.resolve()
    return None
