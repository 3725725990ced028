"""Every loader answers with batches that it gave before; its workers have nothing to do."""

from __future__ import annotations

from unstall.simplify.interventions.base import Intervention


class Here(Intervention):
    """``{"kind": "cached"}``."""

    def on(self) -> None:
        self.engine.loading.cached = True

    def off(self) -> None:
        self.engine.loading.cached = False
