"""A function takes the time it took, but no core: contention for the cores goes away, latency stays."""

from __future__ import annotations

from time import sleep
from typing import Any

from unstall.simplify import replay
from unstall.simplify.interventions import stub


class Here(stub.Here):
    """``{"kind": "sleep", "name": "Photos.decode"}``: a stub that sleeps the mean duration of the calls recorded."""

    @staticmethod
    def answer(ring: replay.Ring, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        sleep(ring.seconds)
        return ring.answer(args, kwargs)
