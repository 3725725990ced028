"""Stalls of a team of threads: now and then one of them waits for a core, and the whole team waits for it.

A few steps then take many times as long as most. The scheduler counts how long threads waited for a core; the stalls
go away with what took the cores: other code of the main thread, or the loader's workers. (``bench/model.py``, the loops
with two threads.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unstall.benchmark.phases import quickest
from unstall.model import thresholds
from unstall.model.pipeline_model import MODEL, Pipeline
from unstall.model.work import Floats


def stalled_seconds(phases: Floats, run_delay_s: float) -> Floats:
    """The part of ``phases`` (seconds, steps by phases) in which a team waited for a thread without a core.

    It is what a step takes beyond the quick ones, as far as ``run_delay_s``, the scheduler's count a step, explains it.
    Steps without a phase say nothing about it.
    """
    quick = np.array([quickest(column) for column in phases.T])
    beyond = np.clip(phases - thresholds.ORDINARY * quick, 0, None)
    total = float(beyond.sum(axis=1).mean())
    stalled: Floats = beyond * min(1.0, run_delay_s / total) if total > 0 else beyond
    return stalled


def with_fewer_stalls(before: Pipeline, after: Pipeline) -> Pipeline:
    """``after``, a changed ``before``, with the stalls that are left when their cause has shrunk.

    The cause is what the loader's workers compute, or without workers what the main thread does beside the model.
    """
    if after.on_device or after.threads <= 1:
        return after
    if before.layout.workers or after.layout.workers:
        left = _worker_computing_left(before, after)
    else:
        was = non_model_seconds(before)
        left = non_model_seconds(after) / was if was > 0 else 1.0
    if left >= 1:
        return after
    return replace(after, wait=after.wait * np.where(np.isin(after.phases, MODEL), left, 1.0))


def non_model_seconds(pipeline: Pipeline) -> float:
    """Seconds a step that the main thread spends on other things than the model's mathematics."""
    phases = (name for name in pipeline.phases if name not in (*MODEL, *pipeline.aside))
    return sum(map(pipeline.phase_s, phases)) + pipeline.making_s


def _worker_computing_left(before: Pipeline, after: Pipeline) -> float:
    """The share that is left of what the workers computed in a step."""
    computed = float(before.service[:, 0].mean())
    if not before.layout.workers or not computed:
        return 1.0
    return float(after.service[:, 0].mean()) / computed if after.layout.workers else 0.0
