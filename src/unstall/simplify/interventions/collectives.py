"""Collectives return at once, and DDP does not reduce gradients: what the ranks cost each other goes away.

Every rank must switch at the same step; the parent sees to that (``at`` in the condition).
"""

from __future__ import annotations

import sys
from typing import Any

from unstall.child import finding
from unstall.simplify.interventions.swapping import Swapping


class _Done:
    """In place of the work that an asynchronous collective returns."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


class Here(Swapping):
    """``{"kind": "collectives", "name": "collectives"}``."""

    def on(self) -> None:
        super().on()
        for model in self._models():
            model.require_backward_grad_sync = False

    def off(self) -> None:
        super().off()
        for model in self._models():
            model.require_backward_grad_sync = True

    def stand_in(self) -> Any:
        return lambda original, args, kwargs: _Done() if kwargs.get("async_op") else None

    @staticmethod
    def _models() -> list[Any]:
        parallel = sys.modules.get("torch.nn.parallel.distributed")
        return finding.instances(parallel.DistributedDataParallel) if parallel is not None else []
