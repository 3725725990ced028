"""Which of a loop's steps are measured: those after warm-up, undisturbed.

The steady-state rule. A loop is warm from the first step on at which the median of the next three steps is no more
than 1.3 times the median of the second half of the run. The first step is never measured (lazy initialisation), nor
are the batches that loader workers made ahead before the loop began, as far as a fifth of the run allows. When no
step fulfils the rule, a fifth of the run is left out: fewer than half of all benchmarks reach a steady state reliably
(Barrett et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017), and the report shows it as noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unstall.benchmark.thresholds import FEWEST_UNDISTURBED, MOST_WARM_UP, SETTLED


def warmup_steps(durations: npt.NDArray[np.float64], prefetched: int = 0) -> int:
    """How many leading steps are warm-up. ``prefetched``: batches that were made ahead before the first step."""
    n = len(durations)
    if n < 4:
        return min(1, max(n - 1, 0))
    most = max(1, int(MOST_WARM_UP * n))
    settled = SETTLED * float(np.median(durations[n // 2 :]))
    first = most
    for index in range(1, most + 1):
        if float(np.median(durations[index : index + 3])) <= settled:
            first = index
            break
    return max(first, min(prefetched, most))


def undisturbed(
    starts: npt.NDArray[np.float64],
    ends: npt.NDArray[np.float64],
    windows: Sequence[tuple[float, float]],
) -> npt.NDArray[np.bool_]:
    """Which steps overlap none of the windows (start, end) in which unstall took time from the program."""
    clean = np.ones(len(starts), dtype=bool)
    for began, ended in windows:
        clean &= (ends <= began) | (starts >= ended)
    return clean


def measured(
    starts: npt.NDArray[np.float64],
    ends: npt.NDArray[np.float64],
    windows: Sequence[tuple[float, float]],
    *,
    prefetched: int = 0,
    wanted: int | None = None,
) -> tuple[npt.NDArray[np.bool_], int, bool]:
    """Which steps are measured, how many were warm-up, and whether disturbed ones had to count.

    With ``wanted``, only the last so many.
    """
    warmup = warmup_steps(ends - starts, prefetched)
    warm = np.arange(len(starts)) >= warmup
    chosen = warm & undisturbed(starts, ends, windows)
    enough = int(chosen.sum()) >= min(FEWEST_UNDISTURBED, int(warm.sum()))
    if not enough:
        chosen = warm
    if wanted is not None:
        surplus = int(chosen.sum()) - wanted
        if surplus > 0:
            chosen[np.flatnonzero(chosen)[:surplus]] = False
        elif surplus < 0:
            # A run that ended early: the latest of the disturbed ones make up the number.
            chosen[np.flatnonzero(warm & ~chosen)[surplus:]] = True
    return chosen, warmup, not enough
