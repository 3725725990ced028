"""What the model's mathematics loses by what the main thread does between two steps of it.

Other code empties the caches of the model's: its first operators then wait for memory. The loss grows with the time
that the other code takes, up to a bound, and is the same with one thread and with several, so it is neither sleeping
threads nor cores that were taken. It was measured (``bench/cold.py``): a function that is made free gives the model
back most of it, which for small models is half of their time.

And the threads of a team that slept meanwhile, or that another thread of the program took the core from, wait for
one: the scheduler counts how long, and that goes with what it comes from.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from unstall.simplify.model.pipeline import MODEL

if TYPE_CHECKING:
    from unstall.simplify.model.pipeline import Pipeline

COLD_S = {"forward": 0.67e-3, "backward": 0.26e-3, "optimizer": 0.22e-3}
"""What each phase loses after much other code; forward comes first and loses most."""
COLD_AFTER_S = 8e-3
"""Of other code, after which two thirds of that are lost."""
_LEAST = 0.25  # of a phase, that is left of it


def apart_s(pipeline: Pipeline) -> float:
    """Seconds a step that the main thread spends on other things than the model's mathematics."""
    own = sum(pipeline.phase_s(name) for name in pipeline.phases if name not in (*MODEL, *pipeline.aside))
    return own + (pipeline.service_s * pipeline.batches_per_step if pipeline.makes_batches else 0.0)


def warmed(before: Pipeline, after: Pipeline) -> Pipeline:
    """``after``, a changed ``before``, with the model's phases as fast as they are beside what is left.

    On an asynchronous device the mathematics is elsewhere; beside loader workers the simulation knows who takes cores.
    """
    if after.on_device or before.layout.workers or after.layout.workers:
        return after
    was, now = apart_s(before), apart_s(after)
    if was <= 0:
        return after
    seen = {name: before.phase_s(name) for name in MODEL}
    total = sum(seen.values())
    waited = before.team_delay_s * max(0.0, 1 - now / was)
    for name, seconds in seen.items():
        if seconds > 0:
            cold = COLD_S[name] * (math.exp(-now / COLD_AFTER_S) - math.exp(-was / COLD_AFTER_S))
            # The wait for a core was part of what was called cold when that was measured.
            gained = max(cold, waited * seconds / total) if waited else cold
            after = after.scale_phase(name, max(_LEAST, 1 - gained / seconds))
    return after
