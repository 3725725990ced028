"""Keras 3: the events of its callbacks, plain functions in a LambdaCallback among them, and the optimizer's update.

The update is one of its own on the torch backend only: on JAX it is inside the compiled step, which counts the steps.
"""

from __future__ import annotations

import sys
from typing import Any

from unstall.child import families
from unstall.child.seams.optimizer import recorded_step

EVENTS = families.event_seam("~event.keras.*")


def _is_event(name: str) -> bool:
    return name.startswith("on_")


def _install(module: Any) -> None:
    families.record_events(module.Callback, EVENTS, _is_event, containers=("CallbackList",))


def _install_lambda(module: Any) -> None:
    families.record_given(module.LambdaCallback, EVENTS, lambda name: name if _is_event(name) else None)


def _install_optimizer(module: Any) -> None:
    if sys.modules["keras.src.backend"].backend() == "torch":
        module.BaseOptimizer.apply = recorded_step(module.BaseOptimizer.apply)


SEAMS = (EVENTS,)
TARGETS = {
    "keras.src.callbacks.callback": _install,
    "keras.src.callbacks.lambda_callback": _install_lambda,
    "keras.src.optimizers.base_optimizer": _install_optimizer,
}
