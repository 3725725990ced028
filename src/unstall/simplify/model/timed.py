"""What timing a function's calls tells of it beyond stack samples: its share, and how cold it leaves the caches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from unstall.simplify.model.machine import speed
from unstall.simplify.model.parts import DATA, Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unstall.simplify.model.pipeline import Pipeline

_MOSTLY = 0.8  # of a phase's time that its seam records


@dataclass(frozen=True)
class Timed:
    """A function that the main thread calls."""

    share: float
    """Of the main thread's time."""
    calls: float
    """A step."""
    emptied: float = 0.0
    """Share of the caches that a step's calls empty, 0 to 1."""
    emptied_by_call: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds a step of each phase while it was timed."""
    overhead_s: float = 0.0
    """A step, that timing added to these."""
    seconds: float = 0.0
    """A step of the pipeline that knows it."""


def knowing(
    pipeline: Pipeline,
    name: str,
    timed: Timed,
    phases: Mapping[str, float] | None = None,
    alone: frozenset[str] = frozenset(),
) -> Pipeline:
    """The pipeline with what is known of a function. The same pipeline where no sample shows it, or shows several.

    ``phases``: seconds a step of each phase as the pipeline has them, where those were not yet so while the function
    was timed: it takes the same share of the phases that it is in; ``alone`` as in :func:`as_long_as`.
    """
    found = pipeline.parts.find(name)
    if len(found) != 1:
        return pipeline
    key = next(iter(found))
    seconds = {place: seconds_of(pipeline, place) * pipeline.parts.share(place, key) for place in pipeline.parts.stacks}
    total = sum(seconds.values())
    if total <= 0:
        return pipeline
    parts, took = pipeline.parts, timed.share * pipeline.measured_s
    if phases and timed.phases:
        then, now = (_around(seconds, one, alone) for one in (timed.phases, phases))
        took = timed.share * sum(timed.phases.values())
        took *= now / (then - timed.overhead_s) if then > timed.overhead_s else 1.0
    for place in parts.stacks:
        parts = parts.with_share(place, key, min(parts.share(place, key) * took / total, 1.0))
    return replace(pipeline, parts=parts, timed={**pipeline.timed, key: replace(timed, seconds=took)})


def seconds_of(pipeline: Pipeline, place: str) -> float:
    """Of the main thread a step, in a phase or the making of batches, as long as it was seen to take.

    What lies between epochs is part of it.
    """
    layout = pipeline.layout
    if place == DATA and pipeline.has_loader:
        return pipeline.making_s / speed(pipeline.busy_seen, layout.cores, layout.contention)
    phase = _phase(place)
    between = layout.epoch_close_s * pipeline.closing.get(phase, 0.0) / layout.epoch if layout.epoch else 0.0
    if phase not in pipeline.phases:
        return between * pipeline.batches_per_step
    index = pipeline.phases.index(phase)
    rate = 1.0 if layout.workers else pipeline.body_rates(layout.contention)[index]
    seen = pipeline.compute[:, index] / rate + pipeline.wait[:, index]
    return float(seen.mean()) + between * pipeline.batches_per_step


def place_of(pipeline: Pipeline, key: Key) -> str:
    """Where the function takes most of its time."""
    return max(pipeline.parts.stacks, key=lambda place: seconds_of(pipeline, place) * pipeline.parts.share(place, key))


def _around(seconds: Mapping[str, float], phases: Mapping[str, float], alone: frozenset[str]) -> float:
    """Seconds of the phases that a function is in, on average over its own seconds in each place."""
    together = sum(phases.values()) - sum(phases.get(_phase(place), 0.0) for place in alone)
    total = sum(seconds.values())
    return sum(
        own / total * (phases.get(_phase(place), 0.0) if place in alone else together) for place, own in seconds.items()
    )


def recorded_alone(pipeline: Pipeline, recorded: Mapping[str, float]) -> frozenset[str]:
    """The places of a recorded pipeline that a seam records by itself; ``recorded``: seconds a step, by phase.

    Samples told the others apart in what no seam claims.
    """
    found = set()
    for place in _places(pipeline):
        seen, told = seconds_of(pipeline, place), recorded.get(_phase(place), 0.0)
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
    seen = {place: seconds_of(pipeline, place) for place in _places(pipeline)}
    together = sum(value for place, value in seen.items() if place not in alone)
    left = sum(seconds.values()) - sum(seconds.get(_phase(place), 0.0) for place in alone)
    for place, value in seen.items():
        if value:
            factor = seconds.get(_phase(place), 0.0) / value if place in alone else max(left, 0.0) / together
            pipeline = pipeline.scale_service(factor) if place == DATA else _as_long(pipeline, place, factor)
    return replace(pipeline, measured_s=sum(seconds.values()))


def _as_long(pipeline: Pipeline, place: str, factor: float) -> Pipeline:
    """A phase so many times as long; what is shorter now is so first of all in what it waits."""
    if place in pipeline.phases and factor < 1:
        index = pipeline.phases.index(place)
        seen, waited = seconds_of(pipeline, place), float(pipeline.wait[:, index].mean())
        left = max(0.0, waited - (1 - factor) * seen)
        column = np.where(np.arange(len(pipeline.phases)) == index, left / waited if waited else 1.0, 1.0)
        pipeline = replace(pipeline, wait=pipeline.wait * column)
        factor = factor * seen / seconds_of(pipeline, place)
    return pipeline.scale_place(place, factor)


def _places(pipeline: Pipeline) -> list[str]:
    return [*pipeline.phases, *([DATA] if pipeline.makes_batches else [])]


def _phase(place: str) -> str:
    return "data_wait" if place == DATA else place
