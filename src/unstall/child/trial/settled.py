"""Whether parameters are changed after the last step of their optimizer: then they are not what was trained.

Numbers that are rounded or swapped before they are saved go into no output any more. After each step the parameters are
summed up; large models are left out.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any

_MOST_ELEMENTS = 20_000_000  # of an optimizer: some milliseconds a step
_MOST_OPTIMIZERS = 16


class Settled:
    """Of the main process' optimizers."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.sums: dict[int, tuple[Any, list[Any]]] = {}

    def watch(self, module: Any) -> None:
        """Sum up after each step. ``module``: ``torch.optim.optimizer``."""
        module.register_optimizer_step_post_hook(lambda optimizer, args, kwargs: self.after_step(optimizer))

    def after_step(self, optimizer: Any) -> None:
        """An optimizer has made a step."""
        if os.getpid() != self.pid or (id(optimizer) not in self.sums and len(self.sums) == _MOST_OPTIMIZERS):
            return
        parameters = _parameters(optimizer)
        if sum(parameter.numel() for parameter in parameters) <= _MOST_ELEMENTS:
            self.sums[id(optimizer)] = weakref.ref(optimizer), [_sum(parameter) for parameter in parameters]

    def changed_since(self) -> int:
        """How many parameters were changed since, of the optimizers that there still are."""
        changed = 0
        for reference, sums in self.sums.values():
            optimizer = reference()
            if optimizer is not None:
                pairs = zip(sums, map(_sum, _parameters(optimizer)))
                changed += sum(not (before == after or before.isnan()) for before, after in pairs)
        return changed


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _sum(parameter: Any) -> Any:
    """A number that is another one where the parameter is; on its device, which nobody waits for."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        values = parameter.detach().abs() if parameter.is_complex() else parameter.detach()
        values = values.double()
        return (values.square() + values).sum()
