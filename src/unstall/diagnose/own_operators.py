"""Tensor operators that the loop's own code calls: a metric over all pixels, a loss or a sort written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.placing import Placed
from unstall.diagnose.thresholds import MOST, TINY_OP_S


@dataclass(frozen=True)
class OwnOperators:
    """The operators of some lines."""

    seconds: float
    """A step."""
    costliest: str
    """Its name, without namespace and overload."""


def own_operators(host: HostFeatures, samples: Sequence[Placed], taken_s: float) -> OwnOperators | None:
    """Those that the lines of these samples call, where they are what takes most of the samples' ``taken_s`` a step.

    None where most of it is Python, calling many tiny operators included, or where operators were not looked at.
    """
    places = {(frame.file, frame.line) for placed in samples for frame, _ in placed.program[-1:]}
    lines = [
        line
        for line in (*host.measurement.operators, *host.measurement.other_operators)
        if any((frame.file, frame.line) in places for frame in line.frames[-1:])
    ]
    seconds = sum(line.forward_per_step for line in lines)
    calls = sum(line.calls * line.per_step for line in lines)
    if seconds <= MOST * taken_s or seconds < TINY_OP_S * calls:
        return None
    costliest = max(lines, key=lambda line: line.forward_per_step)
    return OwnOperators(min(seconds, taken_s), _short(costliest.operator))


def _short(operator: str) -> str:
    """``argmax`` of ``aten.argmax.default``."""
    parts = operator.split(".")
    return parts[1] if len(parts) > 1 else operator
