"""What is left of a step runs faster once other work has gone from between: its code and data stay in the caches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unstall.benchmark.warm_caches import share_left
from unstall.model.pipeline_model import MODEL, Pipeline
from unstall.model.team_stalls import non_model_seconds


def with_warm_caches(before: Pipeline, after: Pipeline) -> Pipeline:
    """``after``, a changed ``before``, with the main thread's computing as fast as its caches let it be.

    They are colder for what else the main thread does, not for what is on other cores; and parts of a model do not
    make each other slower. Where batches begin to be made elsewhere, nothing was measured, and nothing is assumed.
    """
    if before.layout.workers != after.layout.workers:
        return after
    model_s = sum(map(before.phase_s, MODEL))
    was_s, left_s = (model_s + non_model_seconds(pipeline) for pipeline in (before, after))
    factor = share_left(was_s, left_s, before.refetch_s)
    service = after.service if after.layout.workers else after.service * np.array([factor, 1.0])
    return replace(after, compute=after.compute * factor, service=service, take_s=after.take_s * factor)
