"""The garbage collector: every collection, through its own official callbacks."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import native
from unstall.records.vocabulary import Seam

COLLECTION = Seam("~gc")


def _install(module: Any) -> None:
    name = native.intern(COLLECTION.event)

    def collection(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            native.begin(name)
        else:
            native.end(name, info.get("generation", 0))

    module.callbacks.append(collection)


SEAMS = (COLLECTION,)
TARGETS = {"gc": _install}
