"""Backward computes nothing: the parameters get gradients that they had before, so that the optimizer has its work."""

from __future__ import annotations

from typing import Any

from unstall.child.experiments import functions, limits
from unstall.child.experiments.interventions.replacing import ReplacingIntervention
from unstall.child.seams import optimizer


class BackwardIntervention(ReplacingIntervention):
    """Without arguments."""

    name = component = phase = "backward"
    title = "without backward"
    is_training = True
    can_be_slowed = True

    def stand_in(self) -> functions.StandIn:
        gradients: dict[Any, Any] = {}
        real = 0

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            nonlocal real
            if not kwargs.get("accumulate_grad"):  # autograd.grad: its answer is what the program wants of it
                return original(*args, **kwargs)
            if real < limits.BACKWARD_CALLS:
                real += 1
                self.engine.board.count_real_call()
                original(*args, **kwargs)
                gradients.update((p, p.grad) for p in optimizer.parameters() if p.grad is not None)
                return None
            for parameter, gradient in gradients.items():
                if parameter.grad is None:
                    parameter.grad = gradient
            return None

        return stand_in


INTERVENTION = BackwardIntervention
