"""A function takes the time it took, but no core: contention for the cores goes away, latency stays."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, Any

from unstall.simplify import replay
from unstall.simplify.interventions import stub

if TYPE_CHECKING:
    from unstall.simplify.replay import Give


class Ring(replay.Ring):
    """Answers after the mean duration of the calls recorded."""

    def in_turn(self) -> Give:
        following = super().in_turn()

        def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            sleep(self.seconds)
            return following(args, kwargs)

        return answer


class Here(stub.Here):
    """``{"kind": "sleep", "name": "Photos.decode"}``: a stub that sleeps the mean duration of the calls recorded."""

    new_ring = Ring
