"""The recorder as the seams see it: tick kinds, names, wrapping. Runs in the user's process: standard library only.

Names of seams begin with ``~``, so that a user's own span can never be taken for one. The phase a name counts
towards is in :data:`SEAM_PHASES`; the parent reads the same table.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

native: Any
try:
    if "t" in sys.abiflags:  # free-threaded: the C recorder relies on the GIL, and would turn it on for the program
        raise ImportError
    from unstall.child import _recorder as native  # type: ignore[attr-defined,no-redef]

    NATIVE = True
except ImportError:
    from unstall.child import fallback as native

    NATIVE = False

# Tick kinds: what may count the steps of a loop. The parent reads the counts while the program runs.
EXPLICIT, ENV, OPTIMIZER, FORWARD, DATA, BACKWARD, COMM, OTHER = range(8)


def steps_of(ticks: list[int]) -> int:
    """Steps so far, by the kind of tick that most likely counts them; the report looks closer."""
    if ticks[EXPLICIT]:
        return ticks[EXPLICIT]
    optimizer, env = ticks[OPTIMIZER], ticks[ENV]
    if env and env >= 0.2 * optimizer:
        return env
    if optimizer:
        return optimizer
    forward, data = ticks[FORWARD], ticks[DATA]
    return min(forward, data) if forward and data else max(forward, data)


def drives(ticks: list[int]) -> bool:
    """Whether these are of a process that runs a model, or marks its steps."""
    return any(ticks[kind] for kind in (EXPLICIT, OPTIMIZER, FORWARD, BACKWARD))


SEAM_PHASES: dict[str, str] = {
    "~step.next": "data_wait",
    "~data.next": "data_wait",
    "~data.iter": "data_wait",
    "~data.fetch": "data_wait",
    "~data.collate": "data_wait",
    "~forward": "forward",
    "~backward": "backward",
    "~optimizer": "optimizer",
    "~env.step": "env",
    "~env.reset": "env",
}
"""Phase by seam name; a name with a prefix of :data:`PREFIX_PHASES` counts towards that phase."""

PREFIX_PHASES: dict[str, str] = {
    "~comm.": "comm",
    "~callback.": "callback",
    "~transfer.": "transfer",
    "~sync.": "sync",
}

opened_by: Callable[[], None] | None = None
"""Opens the recording of this process at the first seam; a program without seams leaves no file."""


def wrap(
    func: Any,
    name: str,
    *,
    kind: int = -1,
    group: int = -1,
    network: bool = False,
    grad: Callable[[], bool] | None = None,
) -> Any:
    """A callable that records each call of ``func`` as ``name``; see the C recorder for the options."""
    if nvtx_ranges is not None and not network:
        func = nvtx_ranges(func, name)
    return native.wrap(func, name, kind=kind, group=group, network=network, grad=grad)


def wrap_attribute(owner: Any, attribute: str, name: str, **options: Any) -> bool:
    """Wrap ``owner.attribute`` in place; False when there is none or it is wrapped already."""
    original = owner.__dict__.get(attribute) if isinstance(owner, type) else getattr(owner, attribute, None)
    if original is None:
        original = getattr(owner, attribute, None)
    if original is None or isinstance(original, (native.SpanFunction, staticmethod, classmethod, property)):
        return False
    setattr(owner, attribute, wrap(original, name, **options))
    return True


nvtx_ranges: Callable[[Any, str], Any] | None = None
"""With ``--nvtx``: makes a function that opens an NVTX range around another."""


def phase_of(name: str) -> str | None:
    """The phase a seam's name counts towards; None for a user's span and for names of no phase (gc, network)."""
    phase = SEAM_PHASES.get(name)
    if phase is None and name.startswith("~"):
        for prefix, candidate in PREFIX_PHASES.items():
            if name.startswith(prefix):
                return candidate
    return phase


def seam_ready() -> None:
    """Called before a seam is installed: the recording begins."""
    if opened_by is not None:
        opened_by()
