"""The garbage collector: every collection, through its own official callbacks."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import native


def _install(module: Any) -> None:
    name = native.intern("~gc")

    def collection(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            native.begin(name)
        else:
            native.end(name, info.get("generation", 0))

    module.callbacks.append(collection)


TARGETS = {"gc": _install}
