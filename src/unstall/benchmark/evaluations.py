"""Environments in which a policy is only evaluated: their steps are none of the loop that trains it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unstall.benchmark.boundaries import counting, in_turn
from unstall.benchmark.reader import ProcessRecording, Spans, starts
from unstall.benchmark.thresholds import EVALUATED, FEWEST_UPDATES
from unstall.child.seams.environments import RESET
from unstall.records.vocabulary import Tick


def evaluating(process: ProcessRecording, spans: Spans) -> npt.NDArray[np.bool_]:
    """Which spans step or reset an environment in which the policy is only evaluated."""
    names = process.counting(Tick.ENV) + process.of(RESET)
    return np.isin(spans["name"], names) & np.isin(spans["arg"], evaluated(process, spans))


def evaluated(process: ProcessRecording, spans: Spans) -> npt.NDArray[np.uint64]:
    """The environments, by their number in ``arg``, in which the policy is evaluated, and not trained.

    A program that trains steps one environment and learns from it, in each step or after a rollout; now and then it
    runs whole episodes in another. An environment evaluates whose steps are hardly ever the last before an update, and
    do not take turns with those of one that trains, as the parts of a vector made by hand do. Of a program that never
    learns, or in one environment only, none does.
    """
    steps = counting(process, spans, Tick.ENV)
    updates = counting(process, spans, Tick.OPTIMIZER)
    environments, of_step = np.unique(steps["arg"], return_inverse=True)
    before = np.searchsorted(starts(steps), starts(updates)) - 1
    before = before[before >= 0]
    if len(environments) < 2 or len(before) < FEWEST_UPDATES:
        return environments[:0]
    updates_each = np.bincount(of_step[before], minlength=len(environments))
    rates = updates_each / np.bincount(of_step)
    trained = int(np.argmax(updates_each))
    began = [starts(steps[of_step == number]) for number in range(len(environments))]
    is_evaluated = [
        rate < EVALUATED * rates[trained] and not in_turn(began[trained], began[number])
        for number, rate in enumerate(rates)
    ]
    return environments[is_evaluated]
