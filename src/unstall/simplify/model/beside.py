"""What the rest of a step loses by other code of the main thread, and by the loader's workers.

Other code empties the caches of the model's: its first operators then wait for memory. The loss grows with the time
that the other code takes, up to a bound, and is the same with one thread and with several, so it is neither sleeping
threads nor cores that were taken. It was measured (``bench/cold.py``): a function that is made free gives the model
back most of it, which for small models is half of their time. What makes the batches loses like the model's phases.

And the threads of a team that slept meanwhile, or that another thread of the program took the core from, hold up the
team until they get one: a few steps take many times as long as most. The scheduler counts how long they waited; that
goes with what it comes from.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unstall.simplify.model.pipeline import MODEL
from unstall.simplify.model.work import Floats

if TYPE_CHECKING:
    from unstall.simplify.model.pipeline import Pipeline

BATCH = "batch"
COLD_S = {BATCH: 0.28e-3, "other": 0.28e-3, "forward": 0.5e-3, "backward": 0.25e-3, "optimizer": 0.2e-3}
"""What each part loses after much other code; of the model forward comes first and loses most. Code in no phase of its
own, which is Python as that of a batch is, is taken to lose as much as a batch."""
COLD_AFTER_S = 8e-3
"""Of other code, after which two thirds of that are lost."""
COLD_SHARE = 2.0
"""The most that a part loses, over what it takes alone: small ones have little to lose."""
_UNHINDERED = 20  # per cent of the steps, in which no thread of a team waits for a core
_ORDINARY = 1.25  # times as long as those: what steps differ by anyway


def stalls(seen: Floats, delay_s: float) -> Floats:
    """Of phases' seconds, steps by phases, those that a team waited for a thread without a core.

    They are what a step takes beyond most others, as far as the scheduler's count explains it.
    """
    beyond = np.clip(seen - _ORDINARY * np.percentile(seen, _UNHINDERED, axis=0), 0, None)
    total = float(beyond.sum(axis=1).mean())
    found: Floats = beyond * min(1.0, delay_s / total) if total > 0 else beyond
    return found


def apart_s(pipeline: Pipeline) -> float:
    """Seconds a step that the main thread spends on other things than the model's mathematics."""
    own = sum(pipeline.phase_s(name) for name in pipeline.phases if name not in (*MODEL, *pipeline.aside))
    return own + pipeline.making_s


def warmed(before: Pipeline, after: Pipeline) -> Pipeline:
    """``after``, a changed ``before``, with the rest of the step as fast as it is beside what is left.

    On an asynchronous device the mathematics is elsewhere; beside loader workers the simulation knows who takes cores.
    """
    if after.on_device:
        return after
    if before.layout.workers or after.layout.workers:
        return _without_stalls(after, _workers_left(before, after))
    gone = sum(before.phase_s(name) - after.phase_s(name) for name in MODEL)
    was, now = apart_s(before) + max(gone, 0.0), apart_s(after)
    if was <= 0:
        return after
    after = _without_stalls(after, min(1.0, now / was))
    for name, lost in COLD_S.items():
        seconds = after.making_s if name == BATCH else after.phase_s(name)
        if seconds > 0:
            own = 0.0 if name in MODEL else seconds
            factor = _seconds_beside(seconds, lost, was - own, now - own) / seconds
            after = after.scale_service(factor) if name == BATCH else after.scale_phase(name, factor)
    return after


def _seconds_beside(seen_s: float, lost_s: float, was_s: float, now_s: float) -> float:
    """What a part that took ``seen_s`` beside ``was_s`` of other code takes beside ``now_s`` of it.

    ``lost_s``: what it loses by much of it, if it is not a small part.
    """
    before, after = (1 - math.exp(-max(0.0, other) / COLD_AFTER_S) for other in (was_s, now_s))
    alone = max(seen_s - lost_s * before, seen_s / (1 + COLD_SHARE * before))
    return alone + min(lost_s, COLD_SHARE * alone) * after


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
