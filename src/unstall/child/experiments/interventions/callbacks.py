"""Logging, plotting and checkpoint calls of common libraries do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unstall.child.experiments import functions
from unstall.child.experiments.interventions.base import Specification
from unstall.child.experiments.interventions.replacing import ReplacingIntervention

if TYPE_CHECKING:
    from unstall.records.measurements import Measurement
    from unstall.records.report import Report


class CallbacksIntervention(ReplacingIntervention):
    """Without arguments. The user's own logging has a name and is tried by it, as a stub."""

    name = component = "callbacks"
    title = "without logging, plotting and checkpoint calls"
    phase = "callback"
    proves = "callback-bound"

    @classmethod
    def share(cls, report: Report, measurement: Measurement) -> float:
        """The share of the step in the libraries' calls alone, which are timed."""
        return sum(measurement.library_calls.values()) / (measurement.step.mean or 1.0)

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """None: the pipeline model's phase holds the user's own logging too."""
        return None

    def stand_in(self) -> functions.StandIn:
        return lambda original, args, kwargs: None


INTERVENTION = CallbacksIntervention
