"""Which gradients of a model are of parameters that an optimizer updates. Runs in the user's process."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from unstall.child import reading


def facts(root: Any, optimizers: Iterable[Any]) -> dict[str, Any]:
    """Of a ``torch.nn.Module``, where an optimizer is about to step: its gradients, in elements.

    ``gradients``: of all parameters that have one; ``updated``: of those that one of the optimizers works on;
    ``idle``: names of the parts none of whose gradients is. Nothing where no optimizer works on any of it: one may
    keep copies of its own.
    """
    with reading.unobserved():
        known = {id(parameter) for each in optimizers for parameter in given(each)}
        computed, updated = _elements(root, known)
        if not updated:
            return {}
        name, parts = "", reading.children(root)
        while len(parts) == 1:  # a wrapper around the model
            ((inner, root),) = parts
            name, parts = f"{name}{inner}.", reading.children(root)
        idle = [name + part for part, module in parts if (of_part := _elements(module, known))[0] and not of_part[1]]
        return {"gradients": computed, "updated": updated, "idle": idle}


def given(optimizer: Any) -> Iterable[Any]:
    """The parameters that an optimizer updates."""
    groups = reading.attributes(optimizer).get("param_groups") or ()
    return (parameter for group in groups for parameter in group.get("params", ()))


def _elements(root: Any, known: set[int]) -> tuple[int, int]:
    """Elements with a gradient, and those of them that are updated."""
    gradient = sys.modules["torch"].Tensor.grad
    computed = updated = 0
    for parameter in reading.parameters(root):
        shape = reading.shape(parameter)
        if shape is not None and gradient.__get__(parameter) is not None:
            count = math.prod(shape)
            computed += count
            updated += count * (id(parameter) in known)
    return computed, updated
