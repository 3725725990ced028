"""fastai: the events of its callbacks, and ``step`` of its own optimizer; ``OptimWrapper`` has one of torch's."""

from __future__ import annotations

from typing import Any

from unstall.child import families
from unstall.child.seams.optimizer import recorded_step

EVENTS = families.event_seam("~event.fastai.*")


def _install(module: Any) -> None:
    families.record_events(module.Callback, EVENTS, lambda name: name.startswith(("before_", "after_")))


def _install_optimizer(module: Any) -> None:
    module.Optimizer.step = recorded_step(module.Optimizer.step)


SEAMS = (EVENTS,)
TARGETS = {"fastai.callback.core": _install, "fastai.optimizer": _install_optimizer}
