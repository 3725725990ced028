"""How both sides end where something goes wrong: with which exit code, and with what saved by then.

A change that hides errors (``os._exit(0)`` in a ``finally``, an ``except: pass``), passes off what an interrupted run
has made as the result of a whole one, or puts all saving off to the end, is the same as the original as long as nothing
fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from unstall.prove.binaries import OF_CONTENT
from unstall.prove.effects import STDOUT, Content, Effects
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference

_KINDS = {
    "error": " where a call of the model fails late in the run",
    "interrupt": " where Ctrl-C ends it late in the run",
    "full": " where the disk has no room for a file",
}
"""In words that follow "not the same"."""
_LATE = 0.78  # when two of three epochs are over, or three of four


class Fault(NamedTuple):
    """Something that goes wrong."""

    plan: Mapping[str, Any]
    """Of a run in which it does."""
    where: str


def faults_of(original: WholeRun) -> Iterator[Fault]:
    """What is let go wrong in a run; nothing where the program calls no model, or once only.

    ``original``: a run of it that ended well.
    """
    modes = [mode for mode, *_ in (original.account or {}).get("calls", ())]
    mode = (
        "train" if modes.count("train") > 1 else "eval"
    )  # in validation a change may call it for more samples at once
    if modes.count(mode) > 1:
        saves = any(path != STDOUT for path in original.effects.contents)
        for kind, where in _KINDS.items():
            if kind == "full" and not saves:
                continue
            call = 1 if kind == "full" else int(_LATE * modes.count(mode))
            yield Fault({"fault": {"call": call, "mode": mode, "kind": kind}}, where)


def first_difference(original: Effects, changed: Effects) -> Difference | None:
    """How the changed program ends in another way; None where it does not.

    Texts may be in the middle of a line: what is asked is whether each file of numbers is there, and whether it says
    the same but for its numbers, as the epoch that is saved beside them.
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
        if _words(written) != _words(content):
            return Difference(kind="effects", place=path, detail="holds another state")
    for path, content in sorted(changed.contents.items()):
        if path not in original.contents and content.text is None and content.size > 0:
            return Difference(kind="effects", place=path, detail="is written, which it was not")
    return None


def _words(content: Content) -> Mapping[str, bytes]:
    """What a file of numbers says beside them; nothing where its format is not known."""
    return {
        name: part.digest
        for name, part in content.parts.items()
        if name and not part.kind and not name.endswith(OF_CONTENT)
    }
