"""What the rest of a step loses by other code of the main thread, and by the loader's workers.

Other code empties the caches of the model's: its first operators then wait for memory. The loss grows with the time
that the other code takes, up to a bound, and is the same with one thread and with several, so it is neither sleeping
threads nor cores that were taken. It was measured (``bench/cold.py``): a function that is made free gives the model
back most of it, which for small models is half of their time. What makes the batches loses like the model's phases,
and so does the code between the calls of a function, and what comes after the model's mathematics.

And the threads of a team that slept meanwhile, or that another thread of the program took the core from, hold up the
team until they get one: a few steps take many times as long as most. The scheduler counts how long they waited; that
goes with what it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from unstall.model import caches
from unstall.model.parts import DATA, Key
from unstall.model.pipeline import MODEL
from unstall.model.timed import Timed, place_of
from unstall.model.work import Floats

if TYPE_CHECKING:
    from unstall.model.pipeline import Pipeline

_UNHINDERED = 10  # per cent of the steps, in which no thread of a team waits for a core
_ORDINARY = 1.25  # times as long as those: what steps differ by anyway


def stalls(seen: Floats, delay_s: float) -> Floats:
    """Of phases' seconds, steps by phases, those that a team waited for a thread without a core.

    They are what a step takes beyond the quick ones, as far as the scheduler's count explains it. Some phases come only
    in some steps.
    """
    quick = [np.percentile(column[column > 0], _UNHINDERED) if column.any() else 0.0 for column in seen.T]
    beyond = np.clip(seen - _ORDINARY * np.array(quick), 0, None)
    total = float(beyond.sum(axis=1).mean())
    found: Floats = beyond * min(1.0, delay_s / total) if total > 0 else beyond
    return found


def apart_s(pipeline: Pipeline) -> float:
    """Seconds a step that the main thread spends on other things than the model's mathematics."""
    own = sum(pipeline.phase_s(name) for name in pipeline.phases if name not in (*MODEL, *pipeline.aside))
    return own + pipeline.making_s


def warmed(before: Pipeline, after: Pipeline, freed: Mapping[Key, float] | None = None) -> Pipeline:
    """``after``, a changed ``before``, with the rest of the step as fast as it is beside what is left.

    ``freed``: the functions among the changed that were timed, and how many times as long each takes. On an
    asynchronous device the mathematics is elsewhere; beside loader workers the simulation knows who takes cores.
    """
    if after.on_device:
        return after
    if before.layout.workers or after.layout.workers:
        return _without_stalls(after, _workers_left(before, after))
    freed = freed or {}
    others = _others(before, after, freed)
    was, now = others.seconds
    after = _without_stalls(after, min(1.0, now / was) if was > 0 else 1.0)
    around = {place_of(before, key): (before.timed[key], factor) for key, factor in freed.items()}
    for name in dict.fromkeys((*caches.COLD_S, *around)):
        seconds = _part_s(after, name)
        if seconds <= 0:
            continue
        if name in around:
            losses = _around(*around[name], before.cold_after_s)
        else:
            math_s = _around_backward_s(before, freed) if name == "backward" else _math_s(before, name)
            losses = _by_other_code(name, before, after, others)
            losses += caches.after_mathematics(name, (math_s, _math_s(after, name)), before.cold_after_s)
        factor = caches.seconds_after(seconds, losses) / seconds
        after = after.scale_service(factor) if name == DATA else after.scale_phase(name, factor)
    return after


@dataclass(frozen=True)
class _Others:
    """The code beside the model, before a change and after it."""

    seconds: caches.Change
    cooling: caches.Change
    """Seconds of ordinary code that empty the caches as it does."""


def _others(before: Pipeline, after: Pipeline, freed: Mapping[Key, float]) -> _Others:
    seconds = cooling = apart_s(before), apart_s(after)
    for key, factor in freed.items():
        # Some empty the caches sooner than ordinary code does; none leaves them warmer in the end.
        one = before.timed[key]
        more = max(0.0, caches.as_ordinary_s(one.emptied, before.cold_after_s) - one.seconds)
        cooling = cooling[0] + more, cooling[1] + factor * more
    return _Others(seconds, cooling)


def _part_s(pipeline: Pipeline, name: str) -> float:
    return pipeline.making_s if name == DATA else pipeline.phase_s(name)


def _by_other_code(name: str, before: Pipeline, after: Pipeline, others: _Others) -> list[caches.Loss]:
    """What a part loses by the code beside the model, its own aside, and forward by the updates before it."""
    own = 0.0 if name in MODEL else _part_s(after, name)
    updates = (before.phase_s("optimizer"), after.phase_s("optimizer")) if name == "forward" else (0.0, 0.0)
    cooling = _more(others.cooling, updates, caches.UPDATES, -own)
    return caches.after_other_code(name, cooling, _more(others.seconds, updates, 1.0, -own), before.cold_after_s)


def _around(timed: Timed, factor: float, cold_after_s: float) -> list[caches.Loss]:
    """What the code loses that is between a function's calls."""
    emptied = max(timed.emptied_by_call, caches.emptied(timed.seconds / timed.calls, cold_after_s))
    return caches.between_calls(timed.calls, emptied, factor)


def _more(seconds: caches.Change, others: caches.Change, times: float, own: float) -> caches.Change:
    return seconds[0] + times * others[0] + own, seconds[1] + times * others[1] + own


def _math_s(pipeline: Pipeline, part: str) -> float:
    """Seconds of the model's phases that come before a part, as many as empty what they do."""
    if part == "backward":
        return pipeline.phase_s("forward")
    weights = {name: caches.UPDATES if name == "optimizer" else 1.0 for name in MODEL if name != part}
    return sum(weight * pipeline.phase_s(name) for name, weight in weights.items())


def _around_backward_s(pipeline: Pipeline, freed: Mapping[Key, float]) -> float:
    """What backward comes after, where part of it is freed: forward in that part empties as much as was read of it."""
    emptied = max((pipeline.timed[key].emptied for key in freed if pipeline.timed[key].backward.entries), default=0.0)
    return max(_math_s(pipeline, "backward"), caches.as_ordinary_s(emptied, pipeline.cold_after_s))


def _workers_left(before: Pipeline, after: Pipeline) -> float:
    """Of what the workers computed a step, the share that they still do."""
    computed = float(before.service[:, 0].mean())
    if not before.layout.workers or not computed:
        return 1.0
    return min(1.0, float(after.service[:, 0].mean()) / computed) if after.layout.workers else 0.0


def _without_stalls(pipeline: Pipeline, kept: float) -> Pipeline:
    """Only so much of the stalls of teams left."""
    if kept >= 1 or pipeline.threads <= 1:
        return pipeline
    return replace(pipeline, wait=pipeline.wait * np.where(np.isin(pipeline.phases, MODEL), kept, 1.0))
