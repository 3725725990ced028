"""Of how many steps autograd's graph is alive: a loss that is kept with its graph keeps all that its step computed.

The node that a loss comes from holds a mark as long as it lives, whoever keeps it: a list of losses, or their sum.
"""

from __future__ import annotations

import weakref
from typing import Any

from unstall.child import trial

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
    trial.around_backward(module, before=graphs.backward)
