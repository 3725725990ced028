"""The gate: baseline and candidate in turns on the same machine, until it is clear whether the candidate is slower.

Runs alternate A B, B A, A B ... so that a drift of the machine, linear over four runs, cancels. A pair in which others
took much more of the machine from one side than from the other is set aside and run again; that rule looks at the load
and never at the result.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from unstall.records import PhaseName
from unstall.repeat.arms import Arm, Run
from unstall.repeat.sequential import Decision, Finding, Plan, decide

EXIT_CODES: dict[Decision, int] = {"pass": 0, "regression": 1, "cannot tell": 2}

_UNEVEN_LOAD = 0.15  # of the machine's cores

Measure = Callable[[Arm, int], Run]
"""Runs an arm; the number is the run's, from 0."""


class Pair(msgspec.Struct, kw_only=True):
    """One comparison: seconds a step of either side, and what others took of the machine meanwhile, in cores."""

    baseline_s: float
    candidate_s: float
    baseline_other_cores: float
    candidate_other_cores: float
    counts: bool
    """False for a pair that was set aside."""


class PhaseMeans(msgspec.Struct):
    """Seconds a step in a phase, mean over the runs."""

    name: PhaseName
    baseline_s: float
    candidate_s: float


class Slowdown(msgspec.Struct):
    """Candidate's step time over the baseline's. The bounds are one-sided: for the alarm and for the miss."""

    value: float
    low: float
    high: float


class GateResult(msgspec.Struct, kw_only=True):
    """What ``unstall gate`` answers."""

    decision: Literal["regression", "pass", "cannot tell"]
    allowance: float
    slowdown: Slowdown | None
    baseline: str
    candidate: str
    command: list[str]
    pairs: list[Pair]
    phases: list[PhaseMeans]
    duration_s: float
    notes: list[str] = msgspec.field(default_factory=list)


@dataclass
class Gate:
    """A gate in progress.

    ``baseline`` is an arm to run, or the seconds a step of a recorded run.
    """

    plan: Plan
    baseline: Arm | float
    candidate: Arm
    measure: Measure
    budget_s: float = math.inf
    on_pair: Callable[[Pair, int], None] = lambda pair, counted: None
    pairs: list[Pair] = field(default_factory=list)
    _runs: int = 0
    _phases: dict[str, list[dict[PhaseName, float]]] = field(default_factory=lambda: defaultdict(list))

    def decide(self) -> Finding:
        """Run pairs until it is clear, there have been enough, or the next would not fit into the time."""
        began, longest = time.monotonic(), 0.0
        while True:
            ratios = self.log_ratios
            out_of_time = time.monotonic() - began + longest > self.budget_s
            last = len(ratios) >= self.plan.most or out_of_time
            finding = decide(ratios, self.plan, last=last)
            if finding.decision != "go on":
                return finding
            since = time.monotonic()
            self._run_pair()
            longest = max(longest, time.monotonic() - since)

    @property
    def log_ratios(self) -> list[float]:
        """One value for each pair that counts, above 0 where the candidate was slower."""
        return [math.log(pair.candidate_s / pair.baseline_s) for pair in self.pairs if pair.counts]

    def phases(self) -> list[PhaseMeans]:
        """Both sides' phases, those that grew most first."""
        sides = [self._mean_phases(side) for side in ("baseline", "candidate")]
        names = sides[0] | sides[1]
        found = [PhaseMeans(name, sides[0].get(name, 0.0), sides[1].get(name, 0.0)) for name in names]
        return sorted(found, key=lambda phase: phase.baseline_s - phase.candidate_s)

    def _run_pair(self) -> None:
        if isinstance(self.baseline, float):
            run = self._run("candidate", self.candidate)
            pair = Pair(
                baseline_s=self.baseline,
                candidate_s=run.step_s,
                baseline_other_cores=0.0,
                candidate_other_cores=run.other_cores,
                counts=True,
            )
        else:
            order = [("baseline", self.baseline), ("candidate", self.candidate)]
            turned = reversed(order) if len(self.pairs) % 2 else order
            runs = {side: self._run(side, arm) for side, arm in turned}
            pair = _pair(runs["baseline"], runs["candidate"], patient=self._set_aside < self.plan.most)
        self.pairs.append(pair)
        self.on_pair(pair, len(self.log_ratios))

    @property
    def _set_aside(self) -> int:
        return sum(not pair.counts for pair in self.pairs)

    def _run(self, side: str, arm: Arm) -> Run:
        run = self.measure(arm, self._runs)
        self._runs += 1
        self._phases[side].append(dict(run.phases))
        return run

    def _mean_phases(self, side: str) -> dict[PhaseName, float]:
        runs = self._phases[side]
        names: Iterator[PhaseName] = (name for run in runs for name in run)
        return {name: sum(run.get(name, 0.0) for run in runs) / len(runs) for name in dict.fromkeys(names)}


def _pair(baseline: Run, candidate: Run, *, patient: bool) -> Pair:
    uneven = abs(baseline.other_cores - candidate.other_cores) > _UNEVEN_LOAD * baseline.cores
    return Pair(
        baseline_s=baseline.step_s,
        candidate_s=candidate.step_s,
        baseline_other_cores=baseline.other_cores,
        candidate_other_cores=candidate.other_cores,
        counts=not (uneven and patient),
    )
