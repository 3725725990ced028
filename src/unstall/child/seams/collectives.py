"""torch.distributed: the collectives a program calls itself. Those inside DDP's backward are told by blocked time."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from unstall.child import finding
from unstall.child.recording import wrap_attribute
from unstall.records.vocabulary import COMM, Group, Seam, Tick

COLLECTIVE = Seam(
    "~comm.*",
    phase=COMM.name,
    counts=Tick.COMM,
    group=Group.COLLECTIVES,
    stub="collectives",
    frames=((r"torch[/\\]distributed[/\\](distributed_c10d|algorithms|fsdp)", r".*"),),
)

_COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object", "monitored_barrier", "recv",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
)  # fmt: skip


def _install(module: Any) -> None:
    for name in _COLLECTIVES:
        wrap_attribute(module, name, COLLECTIVE, name)


def _find() -> list[FunctionType]:
    return finding.members("torch.distributed.distributed_c10d", *_COLLECTIVES)


SEAMS = (COLLECTIVE,)
TARGETS = {"torch.distributed.distributed_c10d": _install}
FINDERS = {COLLECTIVE.stub: _find}
