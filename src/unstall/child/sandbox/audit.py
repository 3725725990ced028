"""Audit events (PEP 578) of the program's process: those that are asked for. Standard library only."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from unstall.child.recording import native

if TYPE_CHECKING:
    from collections.abc import Callable


def listen(looks: dict[str, Callable[..., None]]) -> None:
    """From here on, call ``looks[event](*arguments)``, in this process and those it forks; what it raises is refused.

    Events that a look causes itself, in its thread, are left out.

    In C where that is built: a hook in Python slows every event down, and ``id()`` is one.
    """
    here = threading.local()
    native.add_audit_hook({event: _unless_busy(here, look) for event, look in looks.items()})


def _unless_busy(here: threading.local, look: Callable[..., None]) -> Callable[..., None]:
    def handle(*arguments: Any) -> None:
        if getattr(here, "busy", False):
            return
        here.busy = True
        try:
            look(*arguments)
        finally:
            here.busy = False

    return handle
