"""A function takes the time it took, but no core: contention for the cores goes away, latency stays."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, Any

from unstall.child.experiments import replay
from unstall.child.experiments.interventions.base import Specification
from unstall.child.experiments.interventions.stub import StubIntervention

if TYPE_CHECKING:
    from unstall.child.experiments.replay import Give


class SleepingRing(replay.Ring):
    """Answers after the mean duration of the calls recorded."""

    def in_turn(self) -> Give:
        following = super().in_turn()

        def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            sleep(self.seconds)
            return following(args, kwargs)

        return answer


class SleepIntervention(StubIntervention):
    """``name="Photos.decode"``: a stub that sleeps for the mean duration of the calls recorded."""

    name = "sleep"

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """None: the pipeline model has no component that sleeps instead."""
        return None

    def new_ring(self) -> replay.Ring:
        return SleepingRing(self.answers, self.engine.collecting_s)


INTERVENTION = SleepIntervention
