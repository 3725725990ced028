"""How both sides end where something goes wrong halfway: with which exit code, and with what saved by then.

A change that hides errors (``os._exit(0)`` in a ``finally``, an ``except: pass``), passes off what an interrupted run
has made as the result of a whole one, or puts all saving off to the end, is the same as the original as long as nothing
fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from unstall.prove.effects import STDOUT, Effects
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference


class Fault(NamedTuple):
    """Something that goes wrong."""

    plan: Mapping[str, Any]
    """Of a run in which it does."""
    where: str
    """In words that follow "not the same"."""


def faults_of(original: WholeRun) -> Iterator[Fault]:
    """What is let go wrong in the middle of a run; nothing where the program calls no model, or once only."""
    calls = len((original.account or {}).get("calls", ()))
    if calls > 1:
        plan = {"call": calls // 2}
        yield Fault({"fault": plan}, " where a call of the model fails halfway")
        yield Fault({"fault": {**plan, "interrupt": True}}, " where Ctrl-C ends it halfway")


def first_difference(original: Effects, changed: Effects) -> Difference | None:
    """How the changed program ends in another way; None where it does not.

    Texts may be in the middle of a line, and weights those of an earlier step: what is asked is whether each is there.
    """
    if changed.status != original.status:
        detail = f"{changed.status} instead of {original.status}"
        return Difference(kind="effects", place="exit code", detail=detail)
    for path, content in sorted(original.contents.items()):
        if path == STDOUT or content.text is not None or content.size <= 0:
            continue
        written = changed.contents.get(path)
        if written is None or written.size <= 0:
            return Difference(kind="effects", place=path, detail="is not written")
    for path, content in sorted(changed.contents.items()):
        if path not in original.contents and content.text is None and content.size > 0:
            return Difference(kind="effects", place=path, detail="is written, which it was not")
    return None
