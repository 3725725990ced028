"""Loaders other than the main one give a single batch: validation is all but free, and its code still runs."""

from __future__ import annotations

from unstall.child.experiments.interventions.base import Intervention


class ValidationIntervention(Intervention):
    """Without arguments."""

    name = component = phase = "validation"
    title = "without validation"
    proves = "callback-bound"

    def on(self) -> None:
        self.engine.loading.first_only = True

    def off(self) -> None:
        self.engine.loading.first_only = False


INTERVENTION = ValidationIntervention
