"""A recorded pipeline with phases as long as they are now: minutes later, in the condition that is changed next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unstall.model.parts import DATA, phase_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unstall.model.pipeline import Pipeline

_MOSTLY = 0.8  # of a phase's time that its seam records
_STALLED = 0.2  # of a phase's time: waiting that comes and goes


def recorded_alone(pipeline: Pipeline, recorded: Mapping[str, float]) -> frozenset[str]:
    """The places of a recorded pipeline that a seam records by itself; ``recorded``: seconds a step, by phase.

    Samples told the others apart in what no seam claims.
    """
    found = set()
    for place in _places(pipeline):
        seen, told = pipeline.seen_s(place), recorded.get(phase_of(place), 0.0)
        if seen and _MOSTLY * seen < told < seen / _MOSTLY:
            found.add(place)
    return frozenset(found)


def as_long_as(pipeline: Pipeline, seconds: Mapping[str, float], alone: frozenset[str]) -> Pipeline:
    """The pipeline with phases that take as long as they do now, in seconds of the main thread a step.

    ``alone``: the places of :func:`recorded_alone`; the others keep their shares of what is left for them together.
    With loader workers, or an asynchronous device, a phase takes as long as what it waits for, and stays as it is.
    """
    if pipeline.layout.workers or pipeline.on_device:
        return pipeline
    seen = {place: pipeline.seen_s(place) for place in _places(pipeline)}
    together = sum(value for place, value in seen.items() if place not in alone)
    left = sum(seconds.values()) - sum(seconds.get(phase_of(place), 0.0) for place in alone)
    for place, value in seen.items():
        if value:
            factor = seconds.get(phase_of(place), 0.0) / value if place in alone else max(left, 0.0) / together
            pipeline = pipeline.scale_service(factor) if place == DATA else _as_long(pipeline, place, factor)
    return replace(pipeline, measured_s=sum(seconds.values()))


def _as_long(pipeline: Pipeline, place: str, factor: float) -> Pipeline:
    """A phase so many times as long: what it waits for grows and shrinks first, where it is much of the phase."""
    if place not in pipeline.phases:
        return pipeline.scale_place(place, factor)
    index = pipeline.phases.index(place)
    seen_s, waited_s = pipeline.seen_s(place), float(pipeline.wait[:, index].mean())
    if waited_s and (factor < 1 or waited_s > _STALLED * seen_s):
        wait_s = max(0.0, waited_s + (factor - 1) * seen_s)
        column = np.where(np.arange(len(pipeline.phases)) == index, wait_s / waited_s, 1.0)
        pipeline = replace(pipeline, wait=pipeline.wait * column)
        left_s = pipeline.seen_s(place)
        factor = factor * seen_s / left_s if left_s else 0.0
    return pipeline.scale_place(place, factor)


def _places(pipeline: Pipeline) -> list[str]:
    return [*pipeline.phases, *([DATA] if pipeline.makes_batches else [])]
