"""Logging, plotting and checkpoint calls of common libraries do nothing."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.simplify import functions
from unstall.simplify.interventions.base import Specification
from unstall.simplify.interventions.replacing import ReplacingIntervention

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
        return sum(measurement.callbacks.values()) / (measurement.step.mean or 1.0)

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """None: the pipeline model's phase holds the user's own logging too."""
        return None

    @classmethod
    def targets(cls) -> list[FunctionType]:
        """The calls that the recorder knows, of the libraries imported."""
        from unstall.child.seams import callbacks as seam

        return functions.of_libraries(
            (module, f"{owner}.{attribute}" if owner else attribute)
            for module, calls in seam._CALLS.items()
            for owner, attributes in calls
            for attribute in attributes
        )

    def stand_in(self) -> functions.StandIn:
        return lambda original, args, kwargs: None
