"""The garbage collector: every collection, through its own official callbacks. Not seen without the C recorder."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import NATIVE, native
from unstall.records.vocabulary import Seam

COLLECTION = Seam("~gc")


def _install(module: Any) -> None:
    if NATIVE:  # in a callback written in Python, the program's KeyboardInterrupt would be lost
        module.callbacks.append(native.gc_callback(COLLECTION.event))


SEAMS = (COLLECTION,)
TARGETS = {"gc": _install}
