"""Backward computes nothing: the parameters get gradients that they had before, so that the optimizer has its work."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from unstall.simplify import functions
from unstall.simplify.interventions.optimizer import live_optimizers
from unstall.simplify.interventions.replacing import ReplacingIntervention
from unstall.simplify.limits import BACKWARD_CALLS


class BackwardIntervention(ReplacingIntervention):
    """Without arguments."""

    name = component = phase = "backward"
    title = "without backward"
    is_training = True
    can_be_slowed = True

    @classmethod
    def targets(cls) -> list[FunctionType]:
        """What ``Tensor.backward`` and ``autograd.backward`` come down to in Python."""
        return functions.of_libraries([("torch.autograd", "_engine_run_backward")])

    def stand_in(self) -> functions.StandIn:
        gradients: dict[Any, Any] = {}
        real = 0

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            nonlocal real
            if not kwargs.get("accumulate_grad"):  # autograd.grad: its answer is what the program wants of it
                return original(*args, **kwargs)
            if real < BACKWARD_CALLS:
                real += 1
                self.engine.board.count_real_call()
                original(*args, **kwargs)
                gradients.update((p, p.grad) for p in _parameters() if p.grad is not None)
                return None
            for parameter, gradient in gradients.items():
                if parameter.grad is None:
                    parameter.grad = gradient
            return None

        return stand_in


def _parameters() -> list[Any]:
    """What the program's optimizers work on."""
    return [p for optimizer in live_optimizers() for group in optimizer.param_groups for p in group["params"]]
