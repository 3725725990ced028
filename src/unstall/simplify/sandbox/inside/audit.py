"""Audit events (PEP 578) of the program's process: those that are asked for. Standard library only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def hear(looks: dict[str, Callable[..., None]]) -> None:
    """From here on call ``looks[event](*arguments)``, in this process and those it forks; what it raises is refused.

    In C where that is built: a hook in Python slows every event down, and ``id()`` is one.
    """
    try:
        from unstall.simplify import _audit  # type: ignore[attr-defined]
    except ImportError:
        sys.addaudithook(_in_python(looks))
    else:
        _audit.hear(looks)


def _in_python(looks: dict[str, Callable[..., None]]) -> Callable[[str, tuple[Any, ...]], None]:
    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        look = looks.get(event)
        if look is not None:
            look(*arguments)

    return audit
