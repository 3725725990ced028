"""Audit events (PEP 578) of the program's process: those that are asked for. Standard library only."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def hear(looks: dict[str, Callable[..., None]]) -> None:
    """From here on call ``looks[event](*arguments)``, in this process and those it forks; what it raises is refused.

    Not for the events of what a look itself does, in its thread.

    In C where that is built: a hook in Python slows every event down, and ``id()`` is one.
    """
    here = threading.local()
    looks = {event: _unless_busy(here, look) for event, look in looks.items()}
    try:
        from unstall.child.sandbox import _audit  # type: ignore[attr-defined]
    except ImportError:
        sys.addaudithook(_in_python(looks))
    else:
        _audit.hear(looks)


def _unless_busy(here: threading.local, look: Callable[..., None]) -> Callable[..., None]:
    def heard(*arguments: Any) -> None:
        if getattr(here, "busy", False):
            return
        here.busy = True
        try:
            look(*arguments)
        finally:
            here.busy = False

    return heard


def _in_python(looks: dict[str, Callable[..., None]]) -> Callable[[str, tuple[Any, ...]], None]:
    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        look = looks.get(event)
        if look is not None:
            look(*arguments)

    return audit
