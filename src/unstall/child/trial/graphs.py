"""Of how many steps autograd's graph is alive: a loss that is kept with its graph keeps all that its step computed.

The node that a loss comes from holds a mark as long as it lives, whoever keeps it: a list of losses, or their sum.
"""

from __future__ import annotations

import weakref
from typing import Any

_NAME = "unstall.alive"


class Mark:
    """Lives as long as the node that holds it."""


class Graphs:
    """Those that backward has gone through."""

    def __init__(self) -> None:
        self.marks: weakref.WeakSet[Mark] = weakref.WeakSet()

    def backward(self, losses: Any) -> None:
        """Backward begins at these."""
        for loss in losses:
            node = getattr(loss, "grad_fn", None)
            if node is not None and _NAME not in node.metadata:
                node.metadata[_NAME] = mark = Mark()
                self.marks.add(mark)

    def alive(self) -> int:
        """How many there still are."""
        return len(self.marks)


def watch(module: Any, graphs: Graphs) -> None:
    """Mark each loss. ``module``: ``torch.autograd``."""
    original = module._engine_run_backward

    def _engine_run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        graphs.backward(outputs)
        return original(outputs, *args, **kwargs)

    module._engine_run_backward = _engine_run_backward
