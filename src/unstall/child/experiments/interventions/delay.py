"""A function takes longer by a share of its own time: no result changes, and the step tells how much it matters.

The idea of causal profiling (Curtsinger and Berger, "Coz", SOSP 2015), turned round: Coz slows everything else to see
a virtual speed-up; here the component itself is slowed, which needs no other thread to be stopped.
"""

from __future__ import annotations

import threading
from time import perf_counter, sleep
from typing import Any

from unstall.child import launchers
from unstall.child.experiments import functions, limits
from unstall.child.experiments.interventions.base import Specification
from unstall.child.experiments.interventions.replacing import ReplacingIntervention


class DelayIntervention(ReplacingIntervention):
    """``name="Photos.decode", share=0.2, by="sleep"``; by ``spin`` the delay takes a core as well.

    With ``rank=1`` that rank alone is slowed: the step tells whether the others wait for it.
    """

    name = "delay"

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """The component so much longer; the main module's ``forward`` is the phase."""
        if "rank" in spec:
            return None
        name = "forward" if spec["name"].endswith(".forward") else spec["name"]
        return {"scales": {name: 1 + float(spec["share"])}}

    def on(self) -> None:
        if self.spec.get("rank") in (None, launchers.own_rank()):
            super().on()

    def stand_in(self) -> functions.StandIn:
        share, wait = float(self.spec["share"]), _spin if self.spec["by"] == "spin" else sleep
        state = threading.local()

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if getattr(state, "inside", False):  # recursion, or a module in a module: its time is counted already
                return original(*args, **kwargs)
            state.inside = True
            began = perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                state.inside = False
                ended = perf_counter()
                owed = getattr(state, "owed", 0.0) + share * (ended - began)
                if owed > limits.LEAST_DELAY_S:
                    wait(owed)
                    owed -= perf_counter() - ended
                state.owed = owed

        return stand_in


def _spin(seconds: float) -> None:
    until = perf_counter() + seconds
    while perf_counter() < until:
        pass


INTERVENTION = DelayIntervention
