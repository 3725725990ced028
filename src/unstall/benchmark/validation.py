"""The time of validation, and of episodes in which a policy is evaluated, in the steps that hold them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unstall.benchmark.boundaries import Floats, counting, epochs_of
from unstall.benchmark.reader import ProcessRecording, Spans, ends, starts
from unstall.child.layout import NOGRAD
from unstall.records import vocabulary
from unstall.records.vocabulary import Tick


def move_validation(
    process: ProcessRecording,
    spans: Spans,
    phase: npt.NDArray[np.int64],
    boundaries: Floats,
    seconds: Floats,
    calls: npt.NDArray[np.int64],
) -> Floats:
    """In a step with validation, all from its first batch to its last forward is the phase `validation`.

    What the training step itself does there (its own batch, its forward with gradients) lies before or after. Where no
    loader gives the batches, as where a policy acts in an environment, the calls of the model alone are.
    """
    forwards = counting(process, spans, Tick.FORWARD)
    quiet = forwards[forwards["flags"] & NOGRAD != 0]
    own_names = process.counting(Tick.BACKWARD) + process.counting(Tick.OPTIMIZER)
    own = np.concatenate([forwards[forwards["flags"] & NOGRAD == 0], spans[np.isin(spans["name"], own_names)]])
    nexts, iters = counting(process, spans, Tick.DATA), epochs_of(process, spans)
    began, ended = starts(spans), ends(spans)
    validation = process.phase_names.index(vocabulary.VALIDATION.name)
    for step in np.flatnonzero(calls):
        lo, hi = boundaries[step], boundaries[step + 1]
        inside = (starts(quiet) >= lo) & (starts(quiet) < hi)
        first, last = starts(quiet)[inside].min(), ends(quiet)[inside].max()
        # From the epoch of the validation loader on, if there is one.
        since = max(lo, ends(own)[starts(own) < first].max(initial=lo))
        opened = starts(iters)[(starts(iters) >= since) & (starts(iters) <= first)]
        asked = starts(nexts)[(starts(nexts) >= since) & (starts(nexts) <= last)]
        early = asked[asked <= first]
        first = opened.max() if len(opened) else (early.max() if len(early) else first)
        has_loader = len(opened) or len(asked)
        within = (began >= first) & (ended <= last) if has_loader else _inside(spans, quiet[inside])
        moved = spans["self"][within] / 1e9
        np.subtract.at(seconds[step], phase[within], moved)
        seconds[step, validation] += last - first if has_loader else moved.sum()
    return np.clip(seconds, 0, None)


def move_evaluations(
    process: ProcessRecording,
    spans: Spans,
    phase: npt.NDArray[np.int64],
    boundaries: Floats,
    seconds: Floats,
    evaluations: Spans,
) -> Floats:
    """In a step in which the policy is evaluated, all between the first and the last of that is `validation`."""
    validation = process.phase_names.index(vocabulary.VALIDATION.name)
    holder = np.searchsorted(boundaries, starts(evaluations), side="right") - 1
    for step in np.unique(holder[(holder >= 0) & (holder < len(seconds))]):
        first, last = starts(evaluations)[holder == step].min(), ends(evaluations)[holder == step].max()
        within = (starts(spans) >= first) & (ends(spans) <= last)
        np.subtract.at(seconds[step], phase[within], spans["self"][within] / 1e9)
        seconds[step, validation] += last - first
    return np.clip(seconds, 0, None)


def _inside(spans: Spans, calls: Spans) -> npt.NDArray[np.bool_]:
    """Which spans lie within these calls, which follow each other, or are one of them."""
    at = np.searchsorted(starts(calls), starts(spans), side="right") - 1
    return (at >= 0) & (ends(spans) <= ends(calls)[np.clip(at, 0, None)])
