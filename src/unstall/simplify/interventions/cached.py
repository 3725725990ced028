"""Every loader answers with batches that it gave before; its workers have nothing to do."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from unstall.simplify import functions
from unstall.simplify.interventions.base import Intervention, Specification


class CachedIntervention(Intervention):
    """Without arguments."""

    name = "cached"
    component = "data"
    title = "cached batches"
    phase = "data_wait"
    proves = "input-bound"
    touches_data = True
    can_be_slowed = True

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """All that makes a batch is free."""
        return {"scales": {cls.component: 0.0}}

    @classmethod
    def targets(cls) -> list[FunctionType]:
        """What makes a batch of a torch loader, in the process that makes it."""
        fetchers = ("_MapDatasetFetcher.fetch", "_IterableDatasetFetcher.fetch")
        return functions.of_libraries(("torch.utils.data._utils.fetch", name) for name in fetchers)

    def on(self) -> None:
        self.engine.loading.cached = True

    def off(self) -> None:
        self.engine.loading.cached = False
