"""Which of a loop's steps are measured: those after warm-up, undisturbed.

The steady-state rule. A loop is warm from the first step on at which the median of the next three steps is no more
than 1.3 times the median of the second half of the run. The first step is never measured (lazy initialisation), nor
are the batches that loader workers made ahead before the loop began, as far as a fifth of the run allows. When no
step fulfils the rule, a fifth of the run is left out: fewer than half of all benchmarks reach a steady state reliably
(Barrett et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017), and the report shows it as noise.

Stacks are sampled in windows of a second, which slows the steps in them by some per cent, so those are left out. But a
step is the less likely to fit between two windows the longer it is: of a program that takes a second to evaluate now
and then, only short steps would be left. Where they are not like the others, all count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unstall.benchmark.thresholds import (
    FEWEST_UNDISTURBED,
    LONGER_ON_THE_WHOLE,
    MOST_WARM_UP,
    MOSTLY_HELD_UP,
    SETTLED,
)


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
    return overlap(starts, ends, windows) <= 0


def overlap(
    starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64], windows: Sequence[tuple[float, float]]
) -> npt.NDArray[np.float64]:
    """Seconds of each step within these windows, which may overlap each other."""
    seconds = np.zeros(len(starts))
    until = -np.inf
    for began, ended in sorted(windows):
        began, until = max(began, until), max(ended, until)
        seconds += np.clip(np.minimum(ends, until) - np.maximum(starts, began), 0, None)
    return seconds


def measured(
    starts: npt.NDArray[np.float64],
    ends: npt.NDArray[np.float64],
    held_up: Sequence[tuple[float, float]],
    sampled: Sequence[tuple[float, float]] = (),
    *,
    prefetched: int = 0,
    wanted: int | None = None,
) -> tuple[npt.NDArray[np.bool_], int, bool]:
    """Which steps are measured, how many were warm-up, and whether disturbed ones had to count.

    Args:
        starts: of each step, monotonic seconds.
        ends: of each step.
        held_up: windows (start, end) that are no part of the steps: in which unstall held the program up, as it counted
            operators, or in which another loop ran.
        sampled: those in which its stacks were sampled.
        prefetched: batches that were made ahead before the first step.
        wanted: only the last so many.
    """
    durations = ends - starts
    warmup = warmup_steps(durations, prefetched)
    warm = np.arange(len(starts)) >= warmup
    chosen = warm & undisturbed(starts, ends, [*held_up, *sampled])
    free = warm & (overlap(starts, ends, held_up) <= MOSTLY_HELD_UP * durations)
    fewest = min(FEWEST_UNDISTURBED, int(warm.sum()))
    enough = int(chosen.sum()) >= fewest and _alike(durations, chosen, free)
    if not enough:
        chosen = free if int(free.sum()) >= fewest else warm
    if wanted is not None:
        surplus = int(chosen.sum()) - wanted
        if surplus > 0:
            chosen[np.flatnonzero(chosen)[:surplus]] = False
        elif surplus < 0:
            # A run that ended early: the latest of the disturbed ones make up the number.
            chosen[np.flatnonzero(warm & ~chosen)[surplus:]] = True
    return chosen, warmup, not enough


def _alike(durations: npt.NDArray[np.float64], some: npt.NDArray[np.bool_], those: npt.NDArray[np.bool_]) -> bool:
    """Whether some steps show as many long ones as all those do: what slows all alike is in the median, too."""
    some_s, all_s = durations[some], durations[those]
    if not all_s.size:
        return True
    means, medians = (float(np.mean(all_s) / np.mean(some_s)), float(np.median(all_s) / np.median(some_s)))
    return means < LONGER_ON_THE_WHOLE * medians
