"""How much faster a thread's work runs once other work of the same thread has gone from between.

Its code and data then stay in the caches. How much that saves depends on who else uses these: on a machine that is
shared, what a step has pushed out of the core's own caches may be gone from the common one too. So a recording holds
what a line of memory costs a step after it was last touched (``child/native/refetch.c``), beside what it costs where
only so much is left of a step. An empirical law, fitted to experiments on tests/zoo (``bench/predictions.py``) and held
against the rest of a step itself (``bench/warm_caches.py``).
"""

from __future__ import annotations

import math

from unstall.benchmark import thresholds


def share_left(was_s: float, left_s: float, refetch_s: float | None) -> float:
    """The share of its time that work still takes when it is all that is left of a step.

    Args:
        was_s: seconds of the thread's work in a step.
        left_s: the seconds of it that were spent on what is left; not in (0, was_s): nothing changes.
        refetch_s: what a line of memory cost after such a step; None where it was not measured.
    """
    if not 0 < left_s < was_s:
        return 1.0
    left = left_s / was_s
    share: float = left**thresholds.WARMS  # of it, what the core's own caches keep
    if refetch_s is not None:
        then_s = min(refetch_s, thresholds.LEAST_REFETCH_S + thresholds.REFETCH_GROWS * left_s)
        share *= math.exp(-thresholds.LINES_PER_S * (refetch_s - then_s) * (1 - left))
    return max(share, 1 - thresholds.MOST_WARMED_S / left_s)
