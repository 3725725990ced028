"""What timing a function's calls tells of it beyond stack samples: its share, and how cold it leaves the caches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from unstall.model.parts import Key, phase_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unstall.model.pipeline import Pipeline


_GROWN = 1.15
"""Times as long as the calls of a function let expect: more than two readings differ by."""


@dataclass(frozen=True)
class Backward:
    """What backward does for the answers of a function."""

    seconds: float = 0.0
    """A step, inside the function."""
    entries: float = 0.0
    """How often a step backward enters it."""
    zeros_s: float = 0.0
    """A step, that zeros in place of the gradients of its parameters take."""


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
    """A step; of the pipeline that knows it, once one does."""
    answer_s: float = 0.0
    """A call that is answered from a record."""
    backward: Backward = Backward()


def knowing(
    pipeline: Pipeline,
    name: str,
    timed: Timed,
    phases: Mapping[str, float] | None = None,
    alone: frozenset[str] = frozenset(),
) -> Pipeline:
    """The pipeline with what is known of a function. The same pipeline where no sample shows it, or shows several.

    ``phases``: seconds a step of each phase as the pipeline has them, where those were not yet so while the function
    was timed: it takes the same share of the phases that it is in; ``alone`` as in
    :func:`unstall.model.adjust.as_long_as`.
    """
    key = _key_of(pipeline, name)
    seconds = seconds_in(pipeline, key) if key is not None else {}
    total = sum(seconds.values())
    if key is None or total <= 0:
        return pipeline
    parts, took = pipeline.parts, timed.share * pipeline.measured_s
    if phases and timed.phases:
        then, now = (_around(seconds, one, alone) for one in (timed.phases, phases))
        took = timed.share * sum(timed.phases.values())
        took *= now / (then - timed.overhead_s) if then > timed.overhead_s else 1.0
    for place in parts.stacks:
        parts = parts.with_share(place, key, min(parts.share(place, key) * took / total, 1.0))
    known = replace(timed, seconds=took, backward=_backward(pipeline, timed, took))
    return replace(pipeline, parts=parts, timed={**pipeline.timed, key: known})


def _backward(pipeline: Pipeline, timed: Timed, took: float) -> Backward:
    """As much of the pipeline's backward as it was of the timed one.

    Where backward has grown and the function's own calls have not, as that of a graph which is never freed, what it has
    grown by is outside.
    """
    inside, whole = timed.backward.seconds, timed.phases.get("backward", 0.0)
    if not whole or not timed.seconds:
        return timed.backward
    now, as_calls = min(inside / whole, 1.0) * pipeline.seen_s("backward"), inside * took / timed.seconds
    return replace(timed.backward, seconds=as_calls if now > _GROWN * as_calls else now)


def timed_of(pipeline: Pipeline, name: str) -> Timed | None:
    """What the pipeline knows of a function beyond the samples."""
    key = _key_of(pipeline, name)
    return pipeline.timed.get(key) if key is not None else None


def _key_of(pipeline: Pipeline, name: str) -> Key | None:
    """The one function that a name means; None where no sample shows it, or shows several."""
    found = pipeline.parts.find(name)
    return next(iter(found)) if len(found) == 1 else None


def seconds_in(pipeline: Pipeline, key: Key) -> dict[str, float]:
    """Seconds a step of a function, by place."""
    return {place: pipeline.seen_s(place) * pipeline.parts.share(place, key) for place in pipeline.parts.stacks}


def place_of(pipeline: Pipeline, key: Key) -> str:
    """Where the function takes most of its time."""
    seconds = seconds_in(pipeline, key)
    return max(seconds, key=lambda place: seconds[place])


def _around(seconds: Mapping[str, float], phases: Mapping[str, float], alone: frozenset[str]) -> float:
    """Seconds of the phases that a function is in, on average over its own seconds in each place."""
    together = sum(phases.values()) - sum(phases.get(phase_of(place), 0.0) for place in alone)
    total = sum(seconds.values())
    return sum(
        own / total * (phases.get(phase_of(place), 0.0) if place in alone else together)
        for place, own in seconds.items()
    )
