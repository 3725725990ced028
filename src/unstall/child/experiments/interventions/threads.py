"""torch uses another number of threads inside an operator."""

from __future__ import annotations

import sys
from typing import Any

from unstall.child.experiments.interventions.base import Intervention, Specification


class ThreadsIntervention(Intervention):
    """``threads=1``, in the main process: loader workers have one anyway."""

    name = "threads"
    before: int | None = None

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """The same setting."""
        return {"threads": int(spec["threads"])}

    def on(self) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and self.engine.in_main:
            self.before = torch.get_num_threads()
            torch.set_num_threads(int(self.spec["threads"]))

    def off(self) -> None:
        if self.before is not None:
            sys.modules["torch"].set_num_threads(self.before)
            self.before = None


INTERVENTION = ThreadsIntervention
