"""Perturb what the program computes with by one unit in the last place, at random: how far does rounding carry?

A model's weights are multiplied by 1 ± eps of their data type once, when they are first used: by a call of the model,
or by a step of an optimizer. What goes into a model is multiplied so at each call, out of place. ``plan["seed"]`` draws
the signs, from a generator of its own: no random number of the program's changes. Whole numbers among the inputs stay
as they are: pixels, masks and one-hot labels are known exactly, and programs compare them with ``==``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial.tensors import is_dense_float

if TYPE_CHECKING:
    from collections.abc import Callable


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Hooks before each outermost call of a model, and before each step of an optimizer."""
    if trial.is_helper():
        return []
    perturbation = Perturbation(int(plan["seed"]))
    return [
        ("torch.nn.modules.module", lambda module: before_calls(module, lambda: _unless_unseen(perturbation))),
        ("torch.optim.optimizer", lambda module: _steps(module, perturbation)),
    ]


def _unless_unseen(perturbation: Perturbation) -> Perturbation | None:
    return None if trial.is_unseen() else perturbation


class Perturbation:
    """Random signs from one seed, and which weights were perturbed with them already.

    In a ``with`` block of it, the models that :func:`before_calls` sees are perturbed, and are as they were afterwards.
    """

    def __init__(self, seed: int):
        self.seed = seed
        self.generator: Any = None
        self.done: dict[int, Any] = {}
        """The weights themselves, by their ``id``: kept, so that no other tensor gets that ``id``."""
        self.originals: list[tuple[Any, Any]] | None = None
        """(weights, what they were), in a ``with`` block."""

    def __enter__(self) -> Perturbation:
        global current
        self.originals, current = [], self
        return self

    def __exit__(self, *error: object) -> None:
        global current
        current = None
        for data, original in self.originals or []:
            data.copy_(original)
        self.originals = None

    def weights(self, parameters: Any) -> None:
        """Perturb those of these parameters, in place, that were not yet; autograd does not notice."""
        for parameter in parameters:
            if id(parameter) not in self.done and is_dense_float(parameter):
                self.done[id(parameter)] = parameter
                data = parameter.data
                if self.originals is not None:
                    self.originals.append((data, data.clone()))
                data.mul_(self._factors(data))

    def inputs(self, value: Any) -> Any:
        """The same value, with each floating-point tensor in its lists, tuples and dicts perturbed."""
        if is_dense_float(value):
            return value * self._factors(value.detach()).masked_fill(value.detach().frac() == 0, 1.0)
        if type(value) in (list, tuple):
            return type(value)(map(self.inputs, value))
        if type(value) is dict:
            return {key: self.inputs(item) for key, item in value.items()}
        return value

    def _factors(self, data: Any) -> Any:
        """1 + eps or 1 - eps for each element."""
        torch: Any = sys.modules["torch"]
        if self.generator is None:
            self.generator = torch.Generator()
            self.generator.manual_seed(self.seed)
        signs = torch.randint(0, 2, data.shape, generator=self.generator, dtype=torch.int8)
        eps = torch.finfo(data.dtype).eps
        return (1 + eps * (2 * signs.to(data.device, torch.float64) - 1)).to(data.dtype)


current: Perturbation | None = None
"""The perturbation whose ``with`` block is being run."""


def before_calls(module: Any, perturbation_now: Callable[[], Perturbation | None]) -> None:
    """Perturb before each call of a model from outside of any. ``module``: ``torch.nn.modules.module``."""
    original = module.Module.__call__
    depth = 0

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        perturbation = None if depth else perturbation_now()
        if perturbation is not None and next(self.parameters(), None) is not None:
            perturbation.weights(self.parameters())
            args, kwargs = perturbation.inputs(args), perturbation.inputs(kwargs)
        depth += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            depth -= 1

    module.Module.__call__ = __call__


def _steps(module: Any, perturbation: Perturbation) -> None:
    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group in optimizer.param_groups:
            perturbation.weights(group["params"])

    module.register_optimizer_step_pre_hook(before)
