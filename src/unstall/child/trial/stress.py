"""Let models give what they give in a training that goes astray: a loss that hides it is told from one that does not.

``log(exp(x).sum())`` is the same as ``logsumexp(x)``, and ``nansum`` as ``sum``, as long as a training goes well.
``plan["factor"]``: of the outputs of each call of a model from outside of any; ``plan["nan"]``: the first row of each
is not a number. Both out of place. ``plan["loss"]``: of each number that gradients are asked of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial.tensors import is_dense_float

if TYPE_CHECKING:
    from collections.abc import Callable


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The results of models."""
    if trial.is_helper():
        return []
    if plan.get("loss"):
        return [("torch", lambda module: _scale_losses(module.Tensor, float(plan["loss"])))]
    change: Callable[[Any], Any] = _spoiled if plan.get("nan") else lambda tensor: tensor * float(plan["factor"])

    def put_astray(model: Any, args: tuple[Any, ...], result: Any) -> Any:
        return result if trial.is_unseen() else astray(result, change)

    return [("torch.nn.modules.module", lambda module: trial.replace_model_results(module, put_astray))]


def _scale_losses(tensor: Any, factor: float) -> None:
    """As who adds gradients up over several batches does, or a scaler of losses."""
    original = tensor.backward

    def backward(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self * factor if self.numel() == 1 else self, *args, **kwargs)

    tensor.backward = backward


def astray(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same value, with each floating-point tensor of more than one number in its lists, tuples and dicts changed.

    A single number is a loss, not what one is computed from.
    """
    if is_dense_float(value):
        return change(value) if value.numel() > 1 else value
    if type(value) in (list, tuple):
        return type(value)(astray(item, change) for item in value)
    if type(value) is dict:
        return {key: astray(item, change) for key, item in value.items()}
    return value


def _spoiled(tensor: Any) -> Any:
    """With its first row not a number, and so what its gradient leads to."""
    factors = tensor.detach().new_ones(len(tensor), *(1 for _ in tensor.shape[1:]))
    factors[0] = float("nan")
    return tensor * factors
