"""Whether what a program writes into its working folder is written there when that is another one.

Who starts a training in a folder for each of its runs finds nothing in them where a change writes beside the program,
and all runs overwrite one another's. A program that needs files of its usual folder cannot be asked.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.prove.effects import STDOUT
from unstall.prove.names import by_known_names
from unstall.records.proof import Difference

if TYPE_CHECKING:
    from unstall.prove.runner import WholeRun

_FOLDER = os.path.join(tempfile.gettempdir(), "elsewhere")
WHERE = " where it is started in another folder"
PLAN: Mapping[str, Any] = {"elsewhere": {"folder": _FOLDER}}


def absolute(line: Sequence[str]) -> list[str]:
    """A command line whose files are named by whole paths."""
    return [os.path.abspath(word) if os.path.exists(word) else word for word in line]


def as_usual(usual: WholeRun, here: Path) -> frozenset[str]:
    """The files that a run writes into its working folder, by their paths in it."""
    below = [os.path.relpath(path, here) for path in _paths(usual) if _is_below(path, os.fspath(here))]
    return frozenset(by_known_names(dict.fromkeys(below)))


def in_folder(run: WholeRun) -> frozenset[str]:
    """The same of a run that was started elsewhere."""
    return as_usual(run, Path(_FOLDER))


def first_difference(original: WholeRun, changed: WholeRun) -> Difference | None:
    """The first file that is in that folder after the original's run alone."""
    missing = in_folder(original) - in_folder(changed)
    if not missing:
        return None
    return Difference(kind="effects", place=min(missing), detail="is not written there")


def _paths(run: WholeRun) -> list[str]:
    return [path for path in run.effects.contents if path != STDOUT]


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)
