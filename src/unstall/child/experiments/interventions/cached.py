"""Every loader answers with batches that it gave before; its workers have nothing to do."""

from __future__ import annotations

from unstall.child.experiments.interventions.base import Intervention


class CachedIntervention(Intervention):
    """Without arguments."""

    name = "cached"
    component = "data"
    title = "cached batches"
    phase = "data_wait"
    proves = "input-bound"
    touches_data = True
    can_be_slowed = True

    def on(self) -> None:
        self.engine.loading.cached = True

    def off(self) -> None:
        self.engine.loading.cached = False


INTERVENTION = CachedIntervention
