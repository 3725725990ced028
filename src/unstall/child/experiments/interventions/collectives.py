"""Collectives return at once, and DDP does not reduce gradients: what the ranks cost each other goes away.

Every rank must switch at the same step; the parent sees to that (``at`` in the condition).
"""

from __future__ import annotations

import sys
from typing import Any

from unstall.child import finding
from unstall.child.experiments import functions
from unstall.child.experiments.interventions.replacing import ReplacingIntervention


class _Done:
    """In place of the work that an asynchronous collective returns."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def _at_once(original: Any, args: Any, kwargs: Any) -> Any:
    """What a call gives back that does nothing: a work where it would have begun one."""
    if original.__name__.startswith("batch_"):
        return [_Done() for _ in args[0]]
    begins = kwargs.get("async_op") or original.__name__ in ("isend", "irecv")
    return _Done() if begins else None


class CollectivesIntervention(ReplacingIntervention):
    """Without arguments."""

    name = component = "collectives"
    title = "without collectives"
    phase = "comm"
    proves = "communication-bound"

    def on(self) -> None:
        super().on()
        self._reduce_gradients(False)

    def off(self) -> None:
        super().off()
        self._reduce_gradients(True)

    def stand_in(self) -> functions.StandIn:
        return _at_once

    @staticmethod
    def _reduce_gradients(enabled: bool) -> None:
        parallel = sys.modules.get("torch.nn.parallel.distributed")
        for model in finding.instances(parallel.DistributedDataParallel) if parallel is not None else ():
            model.require_backward_grad_sync = enabled


INTERVENTION = CollectivesIntervention
