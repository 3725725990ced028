"""Runs that find what an earlier run has left, and whose threads and processes beside the main one are held up.

A program that appends to its log, or takes up where a file of its own ends, does the same as the original in a clean
folder and not in the next run. And a thread that saves weights while the training goes on changing them may save the
right ones as long as it is quick; a process that saves for one that does not wait for it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unstall.prove.left_behind.effects import STDOUT
from unstall.prove.runner import WholeRun

WHERE = " where an earlier run has left its files and threads are held up"
TOO_MUCH = "not compared over the files of an earlier run, which are too large"
PLAN: Mapping[str, Any] = {"held": {}}


def is_as_usual(run: WholeRun, usual: WholeRun) -> bool:
    """Whether a run printed and left what it usually does: each of the files that it found is the same again."""
    status_and_output = ((one.effects.status, one.effects.contents.get(STDOUT)) for one in (run, usual))
    first, second = status_and_output
    return first == second and set(run.effects.contents) <= {STDOUT} and not run.outlived_s


def over(files: Mapping[Path, bytes | None], left: Mapping[Path, bytes]) -> dict[Path, bytes | None]:
    """The files of a side, and what an earlier run of it has left."""
    return {**files, **left}
