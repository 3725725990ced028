"""The environment answers each step with one it gave before: observation, reward and whether the episode ended."""

from __future__ import annotations

from typing import Any

from unstall.child.experiments import limits
from unstall.child.experiments.interventions.base import Specification
from unstall.child.experiments.interventions.stub import StubIntervention


class EnvIntervention(StubIntervention):
    """Without arguments. Many answers are kept, so that episodes end about as often as they did."""

    name = component = phase = "env"
    title = "without env"
    proves = "environment-bound"
    can_be_slowed = True
    answers = limits.ENV_ANSWERS

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """The phase is free."""
        return super(StubIntervention, cls).what_if(spec)


INTERVENTION = EnvIntervention
