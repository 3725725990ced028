"""Runs that find what an earlier run has left, and whose threads and processes beside the main one are held up.

A program that appends to its log, or takes up where a file of its own ends, does the same as the original in a clean
folder and not in the next run. And a thread that saves weights while the training goes on changing them may save the
right ones as long as it is quick; a process that saves for one that does not wait for it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unstall.prove.left_behind.effects import STDOUT, Content, Effects
from unstall.prove.runner import WholeRun

WHERE = " where an earlier run has left its files and threads are held up"
OVER_ANOTHER = " where a training with other seeds has left its files"
TOO_MUCH = "not compared over the files of an earlier run, which are too large"
PLAN: Mapping[str, Any] = {"held": {}}


def is_as_usual(run: WholeRun, usual: WholeRun) -> bool:
    """Whether a run printed and left what it usually does: each of the files that it found is the same again."""
    status_and_output = ((one.effects.status, one.effects.contents.get(STDOUT)) for one in (run, usual))
    first, second = status_and_output
    return first == second and set(run.effects.contents) <= {STDOUT} and not run.outlived_s


def as_left(run: WholeRun, usual: WholeRun, found: Mapping[Path, bytes]) -> Effects:
    """Of a run over the files of another training: what it has left of the files that it usually writes.

    One that it found and wrote as it was, or did not write, is as it was found.
    """
    kept = {str(path): Content.of(content) for path, content in found.items() if str(path) in usual.effects.contents}
    return replace(run.effects, contents={**kept, **run.effects.contents})


def over(files: Mapping[Path, bytes | None], left: Mapping[Path, bytes]) -> dict[Path, bytes | None]:
    """The files of a side, and what an earlier run of it has left."""
    return {**files, **left}
