"""How both sides end where something goes wrong halfway: with which exit code, and with what saved by then.

A change that hides errors (``os._exit(0)`` in a ``finally``, an ``except: pass``), or that puts all saving off to the
end, is the same as the original as long as nothing fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unstall.prove.effects import STDOUT, Effects
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference

WHERE = " where a call of the model fails halfway"


def plan_of(original: WholeRun) -> Mapping[str, Any] | None:
    """The plan of a run with a fault in the middle; None where the program calls no model, or once only."""
    calls = len((original.account or {}).get("calls", ()))
    return {"fault": {"call": calls // 2}} if calls > 1 else None


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
    return None
