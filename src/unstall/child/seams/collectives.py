"""torch.distributed: the collectives a program calls itself. Those inside DDP's backward are told by blocked time."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import COMM, wrap_attribute

_COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object", "monitored_barrier", "recv",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
)  # fmt: skip


def _install(module: Any) -> None:
    for name in _COLLECTIVES:
        wrap_attribute(module, name, f"~comm.{name}", kind=COMM, group=2)


TARGETS = {"torch.distributed.distributed_c10d": _install}
