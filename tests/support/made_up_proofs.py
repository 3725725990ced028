"""Proofs from runs of programs that are made up; their times are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.judge import Judge, ProofOptions
from unstall.prove.left_behind.effects import STDOUT, Content, Effects
from unstall.prove.runner import WholeRun
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
SIDES = Sides({TRAIN: b"a = 1\n"}, {TRAIN: b"a = 2\n"})


def make_account(steps=24, rows=16, **given):
    calls = [["train", rows, "float32", "00"]] * steps
    base = {"steps": steps, "calls": calls, "batches": [], "chains": {"calls": "00", "batches": ""}, "random": {},
            "nice": [0], "policy": [0], "shared": 0, "signals": [4], "cores": [2], "unsettled": 0, "most_threads": 1}  # fmt: skip
    return {**base, **given}


def make_tensors(values=(1.0, 2.0), dtype="float32"):
    array = np.asarray(values, dtype)
    return [ObservedTensor("output.0", 0, dtype, array.shape, array.tobytes(), array.tobytes())]


def make_run(*, seconds=10.0, output="loss 0.5\n", status=0, timed_out=False, **given):
    effects = Effects(status, "ValueError: no" if status else "", {STDOUT: Content.of(output.encode())})
    clock = {"began": 0.0, "times": [1.0, 2.0, 3.0]}
    base = {"tensors": make_tensors(), "account": make_account(), "clock": clock}
    return WholeRun(seconds, timed_out, 1e6, effects, **{**base, **given})


class MadeUp:
    """Answers with runs that are made for the side, and for whether something watches; the first one is a look."""

    def __init__(self, original, changed, sides=SIDES):
        self.original, self.changed, self.before = original, changed, sides.original.get(TRAIN)
        self.spent_s = 0.0
        self.plans = []

    def run(self, files, plan, *, timeout, keeps_files=False):
        run = (self.original if files[TRAIN] == self.before else self.changed)(plan)
        run = replace(run, files={}) if keeps_files else run
        self.plans.append(plan)
        self.spent_s += run.seconds
        return run


def prove(original, changed, sides=SIDES, **options):
    runs = MadeUp(original, changed, sides)
    judge = Judge(runs, sides, ProofOptions(**options), clock=lambda: runs.spent_s)
    return judge.prove(), runs


def seeded(plan, **given):
    """A run whose numbers follow from its seeds."""
    shift = (plan.get("seed") or {}).get("shift")
    return make_run(tensors=make_tensors((3.0, 4.0) if shift else (1.0, 2.0)), **given)


def make_run_of(plan):
    return make_run()


def is_watched(plan):
    return bool({"account", "reached", "fault", "held", "damaged", "many", "elsewhere", "stress"} & set(plan))


def is_plain(plan):
    """Whether a run is compared, under the program's own seeds."""
    return is_watched(plan) and not {"seed", "fault", "stress"} & set(plan)
