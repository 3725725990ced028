"""The optimizer's step does nothing; its hooks run, and a closure is called, as the program expects."""

from __future__ import annotations

import sys
from typing import Any

from unstall.child.experiments import functions
from unstall.child.experiments.interventions.replacing import ReplacingIntervention


class OptimizerIntervention(ReplacingIntervention):
    """Without arguments."""

    name = component = phase = "optimizer"
    title = "without the optimizer's step"
    is_training = True
    can_be_slowed = True

    def stand_in(self) -> functions.StandIn:
        return _no_step


def _no_step(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if closure is None:
        return None
    with sys.modules["torch"].enable_grad():
        return closure()


INTERVENTION = OptimizerIntervention
