"""One file for each library that unstall hooks into: what is recorded there, and how an experiment takes it away.

A new seam is a new file here, or a module of another package with the same contents, named by an entry point of the
group ``unstall.seams``. They run in the user's process: standard library only, the library itself comes as the
argument, fully imported; what a seam replaces must behave exactly as before.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType
from typing import Any, Protocol

from unstall.records.vocabulary import Seam

Install = Callable[[Any], None]
"""Called with a library's module, right after it was imported: puts the seam in place."""
Finder = Callable[[], list[FunctionType]]
"""Finds the functions that do a kind of work, in the running program."""


class Listener(Protocol):
    """Where a seam notes what it learns of the program."""

    def emit_fact(self, kind: str, /, **facts: Any) -> None:
        """Write a line of facts."""

    def emit_fact_once(self, kind: str, /, **facts: Any) -> None:
        """The same, for the first time of each kind only."""


Note = Callable[[Listener, int, Any, Any], None]
"""Called with how many calls there were on this subject, the subject (the first argument) and the second argument."""


class SeamModule(Protocol):
    """What a file of seams holds. It may also have ``FINDERS`` and ``NOTES``."""

    SEAMS: tuple[Seam, ...]
    TARGETS: Mapping[str, Install]
    """What to install, by the name of the library's module."""
    # FINDERS: Mapping[str, Finder], by the ``stub`` of its seams.
    # NOTES: Mapping[str, Note], by the event of a seam: called at its first calls on the main thread.


@cache
def _built_in() -> tuple[Any, ...]:
    # Not by pkgutil, which imports `inspect`: that takes longer than all else at the start of a process.
    files = sorted(name for folder in __path__ for name in os.listdir(folder) if name.endswith(".py"))
    names = [name.removesuffix(".py") for name in files if name != "__init__.py"]
    return tuple(importlib.import_module(f"{__name__}.{name}") for name in names)


_added: list[Any] = []


def add(module: SeamModule) -> None:
    """Take a plug-in's seams in, in this process."""
    _added.append(module)


def _files() -> tuple[Any, ...]:
    return (*_built_in(), *_added)


def built_in() -> tuple[Seam, ...]:
    """The seams that unstall itself has."""
    return tuple(seam for module in _built_in() for seam in module.SEAMS)


def all_seams() -> tuple[Seam, ...]:
    """The seams of this process: the built-in ones, and those of plug-ins that were added."""
    return tuple(seam for module in _files() for seam in module.SEAMS)


def targets() -> dict[str, list[Install]]:
    """What is to be done with each library's module once it has been imported."""
    merged: dict[str, list[Install]] = {}
    for module in _files():
        for name, install in module.TARGETS.items():
            merged.setdefault(name, []).append(install)
    return merged


def finders() -> dict[str, Finder]:
    """The finders of this process, by the kind of work."""
    return {kind: find for module in _files() for kind, find in getattr(module, "FINDERS", {}).items()}


def notes() -> dict[str, Note]:
    """What is noted of the first calls of a seam, by the name of its spans."""
    return {event: note for module in _files() for event, note in getattr(module, "NOTES", {}).items()}
