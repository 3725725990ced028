"""The recorder as the seams see it: wrapping, hooks, and what the counts say. Standard library only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from unstall.records.vocabulary import Seam, Tick

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


BY_HAND = 0.1
"""Calls of backward for each of a model, from which on a program without an optimizer trains: it updates by hand.

One that goes backward and calls no model has bare tensors for weights.
"""


def steps_of(ticks: list[int]) -> int:
    """Steps so far, by the kind of tick that most likely counts them; the report looks closer."""
    if ticks[Tick.EXPLICIT]:
        return ticks[Tick.EXPLICIT]
    optimizer, env = ticks[Tick.OPTIMIZER], ticks[Tick.ENV]
    if env and env >= 0.2 * optimizer:
        return env
    if optimizer or ticks[Tick.REQUEST]:
        return optimizer or ticks[Tick.REQUEST]
    forward, data, backward = ticks[Tick.FORWARD], ticks[Tick.DATA], ticks[Tick.BACKWARD]
    if BY_HAND * forward < backward and (backward <= forward or not forward):
        return backward
    return min(forward, data) if forward and data else max(forward, data)


def drives(ticks: list[int]) -> bool:
    """Whether these are of a process that runs a model, or marks its steps."""
    return any(ticks[kind] for kind in (Tick.EXPLICIT, Tick.OPTIMIZER, Tick.FORWARD, Tick.BACKWARD))


opened_by: Callable[[], None] | None = None
"""Opens the recording of this process at the first seam; a program without seams leaves no file."""

emit_fact: Callable[..., None] | None = None
"""Writes a line of facts, as ``emit_fact(kind, **facts)``, for what a seam learns after a call."""

nvtx_ranges: Callable[[Any, str], Any] | None = None
"""With ``--nvtx``: makes a function that opens an NVTX range around another."""

_NO_TICK = _NO_GROUP = -1


def wrap(
    func: Any,
    seam: Seam,
    member: str = "",
    *,
    network: bool = False,
    grad: Callable[[], bool] | None = None,
    after: Callable[..., int] | None = None,
) -> Any:
    """A callable that records each call of ``func``.

    Args:
        func: any callable.
        seam: what the calls are.
        member: which of a family of seams this is.
        network: record only calls on internet sockets, with the bytes they move.
        grad: called before each outermost call; False where it answers that gradients are disabled.
        after: called with the result and the arguments of each recorded call that returned; what it gives is the
            record's argument. It raises nothing but what a signal handler of the program's raises in it.
    """
    name = seam.named(member) if member else seam.event
    if nvtx_ranges is not None and not network:
        func = nvtx_ranges(func, name)
    kind = _NO_TICK if seam.counts is None else seam.counts
    group = _NO_GROUP if seam.group is None else seam.group
    return native.wrap(func, name, kind=kind, group=group, network=network, grad=grad, after=after)


def wrap_attribute(owner: Any, attribute: str, seam: Seam, member: str = "", **options: Any) -> bool:
    """Wrap ``owner.attribute`` in place; False when there is none or it is wrapped already."""
    original = owner.__dict__.get(attribute) if isinstance(owner, type) else getattr(owner, attribute, None)
    if original is None:
        original = getattr(owner, attribute, None)
    if original is None or isinstance(original, (native.SpanFunction, staticmethod, classmethod, property)):
        return False
    setattr(owner, attribute, wrap(original, seam, member, **options))
    return True


def hooks(seam: Seam) -> tuple[Any, Any]:
    """Two functions, to be called with a subject where a call of a seam that counts something begins and ends."""
    assert seam.counts is not None
    return native.hooks(seam.event, int(seam.counts))


def seam_ready() -> None:
    """Called before a seam is installed: the recording begins."""
    if opened_by is not None:
        opened_by()
