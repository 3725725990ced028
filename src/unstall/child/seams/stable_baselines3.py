"""Stable-Baselines3: the events of its callbacks, and the plain function that may be given instead of one."""

from __future__ import annotations

from typing import Any

from unstall.child import families

EVENTS = families.event_seam("~event.stable_baselines3.*")

_STEP = "_on_step"
_FUNCTION_HOLDER = "ConvertCallback"
_CONTAINERS = ("CallbackList", "EventCallback", "EveryNTimesteps", _FUNCTION_HOLDER)


def _install(module: Any) -> None:
    families.record_events(module.BaseCallback, EVENTS, lambda name: name.startswith("_on_"), _CONTAINERS)
    families.record_given(getattr(module, _FUNCTION_HOLDER), EVENTS, lambda name: _STEP if name == "callback" else None)


SEAMS = (EVENTS,)
TARGETS = {"stable_baselines3.common.callbacks": _install}
