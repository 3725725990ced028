"""Multiply what models give by a large factor, so that a loss which overflows early is told from one that does not.

``log(exp(x).sum())`` is the same as ``logsumexp(x)`` as long as a training goes well. ``plan["factor"]``: of the
outputs of each call of a model from outside of any, out of place.
"""

from __future__ import annotations

from typing import Any

from unstall.child import trial
from unstall.child.trial.tensors import is_dense_float


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The results of models."""
    if trial.is_helper():
        return []
    factor = float(plan["factor"])

    def enlarge(model: Any, args: tuple[Any, ...], result: Any) -> Any:
        return result if trial.is_unseen() else enlarged(result, factor)

    return [("torch.nn.modules.module", lambda module: trial.replace_model_results(module, enlarge))]


def enlarged(value: Any, factor: float) -> Any:
    """The same value, with each floating-point tensor of more than one number in its lists, tuples and dicts enlarged.

    A single number is a loss, not what one is computed from.
    """
    if is_dense_float(value):
        return value * factor if value.numel() > 1 else value
    if type(value) in (list, tuple):
        return type(value)(enlarged(item, factor) for item in value)
    if type(value) is dict:
        return {key: enlarged(item, factor) for key, item in value.items()}
    return value
