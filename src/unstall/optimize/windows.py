"""Which steps of a program are timed and compared: the same in each variant, and all that recurs between them."""

from __future__ import annotations

import math

from unstall.optimize.comparison import TimedWindow
from unstall.optimize.diagnosis import Diagnosis
from unstall.optimize.thresholds import (
    AGENT_STEPS,
    FOLD_BATCHES,
    LATER,
    LEAST_STEPS,
    LONGEST_PERIOD_S,
    MOST_STEPS,
    NEW_STEPS,
    QUICK_FOLD_BATCHES,
    QUICK_LEAST_STEPS,
    QUICK_WARM_UP_STEPS,
    QUICK_WINDOW_S,
    RECURS,
    WARM_UP_STEPS,
    WINDOW_S,
)


def window_of(state: Diagnosis, *, quick: bool, by_call: bool, revisits: bool, all_new: bool = False) -> TimedWindow:
    """The steps to be timed.

    Args:
        state: what is known of the program.
        quick: a short window will do.
        by_call: steps are calls of the model: a change may put several into one.
        revisits: samples must be met again, so there are few different ones.
        all_new: none must be met again, so there are few steps; without ``revisits``.
    """
    if by_call:
        return TimedWindow("forward", WARM_UP_STEPS, None, seconds=WINDOW_S)
    quick = quick or all_new
    seconds = (QUICK_WINDOW_S if quick else WINDOW_S) * (LATER if slows_down(state) else 1.0)
    least, most = QUICK_LEAST_STEPS if quick else LEAST_STEPS, NEW_STEPS if all_new else MOST_STEPS
    steps = int(min(most, max(least, seconds / state.step_s)))
    warmup = QUICK_WARM_UP_STEPS if quick else WARM_UP_STEPS
    if revisits:
        batches = QUICK_FOLD_BATCHES if quick else FOLD_BATCHES
        warmup += batches * (max(1, state.workers) + 1)  # each worker is to meet nearly all, in random order
        return TimedWindow(state.kind, warmup, steps, fold=(state.batch_size or 1) * batches)
    period = None if all_new else period_of(state)
    return TimedWindow(state.kind, warmup, period * math.ceil(steps / period) if period else steps)


def steps_to_compare(state: Diagnosis, *, quick: bool, by_anybody: bool) -> int:
    """Of what is computed: what recurs between steps once, and where anybody may have written a change, as many as its
    speed is measured by; 0 for as many as usual.
    """
    seconds = QUICK_WINDOW_S if quick else WINDOW_S
    written = min(AGENT_STEPS, WARM_UP_STEPS + int(seconds / state.step_s)) if by_anybody else 0
    period = period_of(state)
    return max(written, period + 1 if period else 0)


def slows_down(state: Diagnosis) -> bool:
    """Whether its steps take longer the more of them were made: the first ones say little of what a change brings."""
    return any(finding.pattern == "slows-down" for finding in state.report.findings)


def period_of(state: Diagnosis) -> int | None:
    """Steps from one evaluation to the next, where these take a good part of the loop; None where they take little, or
    are too far apart to time one in each run.
    """
    between, step_s = state.context.measurement.between, state.step_s
    if between is None or between.mean_s < RECURS * step_s:
        return None
    steps = max(1, round(between.each_s / between.mean_s))
    return steps if steps * step_s <= LONGEST_PERIOD_S else None
