"""The main loader is read as fast as it gives, without the model, for some seconds: the ceiling of the data."""

from __future__ import annotations

from time import monotonic

from unstall.child.experiments.interventions.base import Intervention


class DataAloneIntervention(Intervention):
    """``seconds=3.0``; the times at which batches came are emitted as the fact ``data_alone``."""

    name = "data_alone"

    def on(self) -> None:
        if self.engine.in_main:
            self.engine.loading.alone_until = monotonic() + float(self.spec["seconds"])

    def off(self) -> None:
        self.engine.loading.alone_until = None


INTERVENTION = DataAloneIntervention
