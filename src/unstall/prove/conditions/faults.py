"""How both sides end where something goes wrong: with which exit code, and with what saved and said by then.

A change that hides errors (``os._exit(0)`` in a ``finally``, an ``except: pass``), passes off what an interrupted run
has made as the result of a whole one, or puts all saving or printing off to the end, is the same as the original as
long as nothing fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from unstall.prove import accounts
from unstall.prove.left_behind.binaries import OF_CONTENT, hold_the_same
from unstall.prove.left_behind.effects import STDOUT, Content, Effects
from unstall.prove.left_behind.names import by_known_names
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference

_LATE = 0.78  # when two of three epochs are over, or three of four
_EARLY = 0.5  # when there is something that an earlier validation has left
_ORPHANED_S = 12.0  # torch's loader workers look for their parent every five
_TEXTS = 2  # texts for which there is no room, each in runs of its own
_FEWER = 2  # lines that may be on their way where something fails


class Fault(NamedTuple):
    """Something that goes wrong."""

    plan: Mapping[str, Any]
    """Of a run in which it does."""
    where: str
    """In words that follow "not the same"."""
    compares_files: bool = True
    """Whether the same files must be there: one that is cut off may be another's, under a name for a while."""
    outlives_s: float | None = None
    """How long processes that it has started may go on after its end; None where that is not asked."""


def faults_of(original: WholeRun) -> Iterator[Fault]:
    """What is let go wrong in a run; nothing where the program calls no model, or once only.

    ``original``: a run of it that ended well.
    """
    counts = {mode: accounts.calls_of(original.account or {"calls": ()}, mode) for mode in ("train", "eval")}
    # In validation a change may call it for more samples at once.
    mode = "train" if counts["train"] > 1 else "eval"
    if counts[mode] < 2:
        return
    files = {path: content for path, content in original.effects.contents.items() if path != STDOUT}
    late = int(_LATE * counts[mode])
    yield Fault(_plan("error", late, mode), " where a call of the model fails late in the run")
    if mode == "train" and counts["eval"]:
        middle = max(1, int(_EARLY * counts["eval"]))
        yield Fault(_plan("error", middle, "eval"), " where a call of the model fails in validation")
    yield Fault(_plan("interrupt", late, mode), " where Ctrl-C ends it late in the run")
    if files:
        yield Fault(_plan("full", 1, mode), " where the disk has no room for a file")
    largest = max((content.size for content in files.values() if content.text is None), default=0)
    if largest > 1:
        plan = {"fault": {"kind": "cut", "bytes": largest // 2}}
        yield Fault(plan, " where the disk has no room for half of its largest file of numbers", compares_files=False)
    for path in sorted(path for path, content in files.items() if content.text)[:_TEXTS]:
        plan = {"fault": {"kind": "no-room", "path": path}}
        yield Fault(plan, f" where the disk has no room for {Path(path).name}", compares_files=False)
    plan = {**_plan("kill", late, mode), "outlives": {"seconds": _ORPHANED_S}}
    yield Fault(plan, " where it is killed late in the run", outlives_s=_ORPHANED_S)


def _plan(kind: str, call: int, mode: str) -> Mapping[str, Any]:
    return {"fault": {"call": call, "mode": mode, "kind": kind}}


def first_difference(original: Effects, changed: Effects, fault: Fault) -> Difference | None:
    """How the changed program ends in another way; None where it does not.

    Texts may be in the middle of a line: what is asked is whether most lines are there, whether each file of numbers
    is, and whether it says the same but for its numbers, as the epoch that is saved beside them. A draft that is left
    in the working folder would be in the next run's way; elsewhere, where the system tidies up, one of text is not.
    """
    statuses = changed.status, original.status
    if statuses[0] != statuses[1] and (fault.compares_files or 0 in statuses):
        detail = f"{changed.status} instead of {original.status}"
        return Difference(kind="effects", place="exit code", detail=detail)
    if not fault.compares_files:
        return None
    before, after = by_known_names(original.contents), by_known_names(changed.contents)
    for path, content in sorted(before.items()):
        if content.text is None and content.size > 0:
            difference = _of_numbers(content, after.get(path))
        else:
            difference = _of_text(content.text or "", after.get(path))
        if difference:
            return Difference(kind="effects", place=path, detail=difference)
    for path, content in sorted(after.items()):
        is_in_the_way = content.text is None or path.startswith(f"{Path.cwd()}{os.sep}")
        if path not in before and is_in_the_way and content.size > 0:
            return Difference(kind="effects", place=path, detail="is left, which it was not")
    if original.last_line and not changed.last_line:
        return Difference(kind="effects", place="standard error", detail=f"nothing instead of {original.last_line!r}")
    return None


def goes_on(original: WholeRun, changed: WholeRun, fault: Fault) -> str | None:
    """In words, that a process of the changed program alone does not notice its end."""
    limit = fault.outlives_s
    if limit is None or original.outlived_s >= limit or changed.outlived_s < limit:
        return None
    return f"a process of it goes on for {limit:.0f} s and more{fault.where}, and the original's do not"


def of_numbers(effects: Effects) -> Effects:
    """The files of numbers alone."""
    contents = {path: each for path, each in effects.contents.items() if each.text is None and each.size > 0}
    return Effects(0, "", contents)


def other_numbers(original: Effects, changed: Effects) -> Difference | None:
    """The first file that holds other numbers, of those that both have left; to be asked where runs are exact."""
    for path, content in sorted(original.contents.items()):
        after = changed.contents.get(path)
        is_of_numbers = content.text is None and content.size > 0
        if is_of_numbers and after is not None and not _are_alike(content, after):
            return Difference(kind="values", place=path, detail="holds other numbers")
    return None


def _are_alike(content: Content, other: Content) -> bool:
    return content.digest == other.digest or hold_the_same(content.parts, other.parts)


def _of_numbers(before: Content, after: Content | None) -> str:
    """In words; nothing where there is no difference."""
    if after is None or after.size <= 0:
        return "is not written"
    return "holds another state" if _words(after) != _words(before) else ""


def _of_text(before: str, after: Content | None) -> str:
    """Whether what was printed or written is withheld until the end."""
    lines, others = before.count("\n"), ((after.text if after else "") or "").count("\n")
    return f"{others} lines by then instead of {lines}" if lines >= max(_FEWER + others, 2 * others) else ""


def _words(content: Content) -> Mapping[str, bytes]:
    """What a file of numbers says beside them; nothing where its format is not known."""
    return {
        name: part.digest
        for name, part in content.parts.items()
        if name and not part.kind and not name.endswith(OF_CONTENT)
    }
