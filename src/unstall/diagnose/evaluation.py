"""The host code of an evaluation: not its model's calls alone, but all that the functions around them do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unstall.diagnose import vocabulary
from unstall.diagnose.callers import functions_of
from unstall.diagnose.placing import Placed
from unstall.diagnose.positions import HOST_PLACES
from unstall.records.vocabulary import BACKWARD, CALLBACK, FORWARD, OPTIMIZER, VALIDATION

_TRAINING = (FORWARD.name, BACKWARD.name, OPTIMIZER.name)
_BY_LOOK = (*HOST_PLACES, CALLBACK.name, FORWARD.name)
"""Where code is placed that no call of a seam is around: what is called `evaluate` looks like a callback."""


def with_evaluation(samples: Sequence[Placed]) -> list[Placed]:
    """The same samples, but those in functions that only an evaluation runs through are of the phase `validation`.

    Such are the functions on the stacks of its calls of the model, and on no stack of the training's.
    """
    shared = {
        function
        for placed in samples
        if placed.in_seam and placed.phase in _TRAINING
        for function in functions_of(placed)
    }
    own = {function for placed in samples if placed.phase == VALIDATION.name for function in functions_of(placed)}
    own -= shared
    return [
        replace(placed, phase=VALIDATION.name)
        if _is_by_look(placed) and not own.isdisjoint(functions_of(placed))
        else placed
        for placed in samples
    ]


def _is_by_look(placed: Placed) -> bool:
    """Whether nothing but names and lines tells the phase; what a library plots or logs is no evaluation."""
    is_placed = placed.phase in _BY_LOOK and not placed.in_seam
    return is_placed and not vocabulary.is_callback_library(placed.sample.frames)
