"""Multiply what models give by a large factor, so that a loss which overflows early is told from one that does not.

``log(exp(x).sum())`` is the same as ``logsumexp(x)`` as long as a training goes well. ``plan["factor"]``: of the
outputs of each call of a model from outside of any, out of place.
"""

from __future__ import annotations

import functools
from typing import Any

from unstall.child import trial
from unstall.child.trial.tensors import is_dense_float


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The calls of modules."""
    if trial.is_helper():
        return []
    return [("torch.nn.modules.module", lambda module: enlarge_results(module, float(plan["factor"])))]


def enlarge_results(module: Any, factor: float) -> None:
    """Let each outermost call of a model give so many times as much. ``module``: ``torch.nn.modules.module``."""
    original = module.Module.__call__
    depth = 0

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        depth += 1
        try:
            result = original(self, *args, **kwargs)
        finally:
            depth -= 1
        is_model = not depth and not trial.is_unseen() and next(self.parameters(), None) is not None
        return enlarged(result, factor) if is_model else result

    module.Module.__call__ = __call__


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
