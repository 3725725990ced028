"""PyTorch Lightning: the events of its callbacks, and the hooks of the LightningModule itself."""

from __future__ import annotations

from typing import Any

from unstall.child import families

EVENTS = families.event_seam("~event.lightning.*")

_OF_DATA = ("on_before_batch_transfer", "on_after_batch_transfer")
"""Hooks that make the batch, on its way to the device."""


def _is_event(name: str) -> bool:
    return name.startswith("on_") and name not in _OF_DATA


def _install_callbacks(module: Any) -> None:
    families.record_events(module.Callback, EVENTS, _is_event)


def _install_lambda(module: Any) -> None:
    families.record_given(module.LambdaCallback, EVENTS, lambda name: name if _is_event(name) else None)


def _install_module(module: Any) -> None:
    families.record_events(module.LightningModule, EVENTS, _is_event)


SEAMS = (EVENTS,)
TARGETS = {
    f"{package}.{module}": install
    for package in ("lightning.pytorch", "pytorch_lightning")
    for module, install in (
        ("callbacks.callback", _install_callbacks),
        ("callbacks.lambda_function", _install_lambda),
        ("core.module", _install_module),
    )
}
