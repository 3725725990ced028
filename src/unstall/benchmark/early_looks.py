"""Which early look at a loop is that of the main one: of a program that trains twice, each training is looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unstall.benchmark.boundaries import counting, primary
from unstall.benchmark.reader import ProcessRecording
from unstall.benchmark.steps import Loop, main_spans
from unstall.child.seams.optimizer import STEP
from unstall.records.vocabulary import Tick

_Fact = dict[str, Any]


def of_loop(main: ProcessRecording, loop: Loop) -> ProcessRecording:
    """The recording without what was seen of other trainings: operators, modules, dropped gradients.

    A look is the loop's where one of its optimizers is what was looked at; else where it was taken while the loop ran.
    """
    trainings = {fact.get("look", 0): fact for fact in main.facts.get("flops", []) if fact.get("per") == STEP.event}
    if len(trainings) < 2:
        return main
    own = _look_of(main, loop, trainings)
    others = set(trainings) - {own}
    return replace(main, facts={kind: _without(lines, others) for kind, lines in main.facts.items()})


def _look_of(main: ProcessRecording, loop: Loop, trainings: dict[int, _Fact]) -> int:
    subjects = np.unique(primary(counting(main, main_spans(main), Tick.OPTIMIZER))["arg"])
    of_subject = [look for look, fact in trainings.items() if fact["subject"] in subjects]
    marks = {
        fact.get("look", 0): fact["marks"] for fact in main.facts.get("window", []) if fact.get("what") == "modules"
    }
    meanwhile = [look for look in trainings if loop.starts[0] <= marks.get(look, [0.0])[-1] <= loop.ends[-1]]
    last = next(reversed(trainings))
    return [*of_subject, *meanwhile, last][0]


def _without(lines: list[_Fact], looks: set[int]) -> list[_Fact]:
    return [line for line in lines if line.get("look") not in looks]
