"""The optimizer's step does nothing; its hooks run, and a closure is called, as the program expects."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from unstall.simplify import functions
from unstall.simplify.interventions.replacing import ReplacingIntervention


class OptimizerIntervention(ReplacingIntervention):
    """Without arguments."""

    name = component = phase = "optimizer"
    title = "without the optimizer's step"
    is_training = True
    can_be_slowed = True

    @classmethod
    def targets(cls) -> list[FunctionType]:
        """The step functions of the optimizers alive, beneath torch's hooks."""
        return functions.unwrapped(type(optimizer).step for optimizer in live_optimizers())

    def stand_in(self) -> functions.StandIn:
        return _no_step


def live_optimizers() -> list[Any]:
    """The optimizers of the program."""
    module = sys.modules.get("torch.optim.optimizer")
    return functions.instances(module.Optimizer) if module is not None else []


def _no_step(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if closure is None:
        return None
    with sys.modules["torch"].enable_grad():
        return closure()
