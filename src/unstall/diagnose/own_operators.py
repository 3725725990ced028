"""Tensor operators that the loop's own code calls: a metric over all pixels, a loss or a sort written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.placing import Placed
from unstall.diagnose.thresholds import CALLED_OP_S, MOST, TINY_OP_S


@dataclass(frozen=True)
class OwnOperators:
    """The operators of some lines, a step."""

    seconds: float
    """Of the operators themselves."""
    calls: float
    costliest: str
    """Its name, without namespace and overload."""

    @property
    def are_large(self) -> bool:
        """Whether they compute for longer than calling them takes."""
        return self.seconds >= TINY_OP_S * self.calls


def own_operators(host: HostFeatures, samples: Sequence[Placed], taken_s: float) -> OwnOperators | None:
    """Those that the lines of these samples call, where these are what takes most of the samples' ``taken_s`` a step.

    Large ones by themselves, small ones with what calling them takes. None where most of it is Python that calls none,
    or where operators were not looked at.
    """
    places = {(frame.file, frame.line) for placed in samples for frame, _ in placed.program[-1:]}
    lines = [
        line
        for line in host.measurement.operator_lines
        if any((frame.file, frame.line) in places for frame in line.frames[-1:])
    ]
    if not lines:
        return None
    costliest = max(lines, key=lambda line: line.forward_per_step)
    found = OwnOperators(
        min(taken_s, sum(line.forward_per_step for line in lines)),
        sum(line.calls * line.per_step for line in lines),
        _short(costliest.operator),
    )
    explained_s = found.seconds if found.are_large else CALLED_OP_S * found.calls
    return found if explained_s > MOST * taken_s else None


def _short(operator: str) -> str:
    """``argmax`` of ``aten.argmax.default``."""
    parts = operator.split(".")
    return parts[1] if len(parts) > 1 else operator
