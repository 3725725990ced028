"""The sandbox: an experiment's program runs as it always does, and what it writes is gone afterwards.

The program's own processes import parts of this package (``inside``), so nothing else is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstall.sandbox.sandbox import Sandbox, SandboxError, open_sandbox

__all__ = ["Sandbox", "SandboxError", "open_sandbox"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from unstall.sandbox import sandbox

    return getattr(sandbox, name)
