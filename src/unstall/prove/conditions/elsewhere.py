"""Whether what a program writes into its working folder is written there when that is another one.

Who starts a training in a folder for each of its runs finds nothing in them where a change writes beside the program,
and all runs overwrite one another's. A program that needs files of its usual folder cannot be asked.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unstall.prove.left_behind.effects import STDOUT, Effects
from unstall.prove.left_behind.names import by_known_names
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference

FOLDER = Path(tempfile.gettempdir(), "elsewhere")
WHERE = " where it is started in another folder"
PLAN: Mapping[str, Any] = {"elsewhere": {"folder": str(FOLDER)}}


def below(run: WholeRun, folder: Path) -> Effects:
    """What a run has printed, and left in its working folder, by the paths in it."""
    inside = os.fspath(folder).rstrip(os.sep) + os.sep
    contents = {
        path.removeprefix(inside): content
        for path, content in run.effects.contents.items()
        if path == STDOUT or path.startswith(inside)
    }
    return replace(run.effects, contents=contents)


def writes(effects: Effects) -> bool:
    """Whether there is a file."""
    return bool(effects.contents.keys() - {STDOUT})


def first_difference(original: Effects, changed: Effects) -> Difference | None:
    """The first file that is there after the original's run alone."""
    missing = by_known_names(original.contents).keys() - by_known_names(changed.contents).keys()
    if not missing:
        return None
    return Difference(kind="effects", place=min(missing), detail="is not written there")
