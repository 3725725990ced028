"""The gate: baseline and candidate in turns on the same machine, until it is clear whether the candidate is slower.

Runs alternate A B, B A, A B ... so that a drift of the machine, linear over four runs, cancels. A pair in which others
took much more of the machine from one side than from the other is set aside and run again; that rule looks at the load
and never at the result.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from unstall.records.comparison import ChangedFact, GatePair, PhaseMedians
from unstall.records.measurements import Measurement
from unstall.records.vocabulary import PhaseName
from unstall.repeat import differences
from unstall.repeat.arms import Arm, ArmRun
from unstall.repeat.sequential import SequentialPlan, SequentialResult, decide
from unstall.repeat.thresholds import FIRST_END, UNEVEN_LOAD

Measure = Callable[[Arm, int], ArmRun]
"""Runs an arm; the number is the run's, from 0."""


@dataclass(frozen=True)
class RecordedBaseline:
    """A baseline that has run already: seconds a step, and in each phase."""

    step_s: float
    phases: Mapping[PhaseName, float]
    measurement: Measurement | None = None


@dataclass
class Gate:
    """A gate in progress."""

    plan: SequentialPlan
    baseline: Arm | RecordedBaseline
    candidate: Arm
    measure: Measure
    budget_s: float = math.inf
    on_pair: Callable[[GatePair, int], None] = lambda pair, counted: None
    pairs: list[GatePair] = field(default_factory=list)
    out_of_time: bool = False
    """Whether the gate ended because its time was up."""
    _latest: dict[str, Measurement | None] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _phases: dict[str, list[Mapping[PhaseName, float]]] = field(default_factory=lambda: defaultdict(list))

    def decide(self) -> SequentialResult:
        """Run pairs until the answer is clear, there are enough, or the next one would not fit into the time."""
        began, longest = time.monotonic(), 0.0
        while True:
            ratios = self.log_ratios
            enough = len(ratios) >= self.plan.most
            self.out_of_time = not enough and time.monotonic() - began + longest > self.budget_s
            finding = decide(ratios, self.plan, last=enough or self.out_of_time)
            if finding.decision != "go on":
                return finding
            since = time.monotonic()
            self._run_pair()
            longest = max(longest, time.monotonic() - since)

    @property
    def log_ratios(self) -> list[float]:
        """One value for each pair that counts, above 0 where the candidate was slower."""
        return [math.log(pair.candidate_s / pair.baseline_s) for pair in self.pairs if pair.counts]

    def phases(self) -> list[PhaseMedians]:
        """Both sides' phases, those that grew most first."""
        sides = [self._median_phases(side) for side in ("baseline", "candidate")]
        names = sides[0] | sides[1]
        medians = [PhaseMedians(name, sides[0].get(name, 0.0), sides[1].get(name, 0.0)) for name in names]
        return sorted(medians, key=lambda phase: phase.baseline_s - phase.candidate_s)

    def settings(self) -> list[ChangedFact]:
        """What the two sides' latest runs were set to differently."""
        latest = [self._latest.get(side) for side in ("baseline", "candidate")]
        if isinstance(self.baseline, RecordedBaseline):
            latest[0] = self.baseline.measurement
        return differences.settings(*latest)

    def _run_pair(self) -> None:
        if isinstance(self.baseline, Arm):
            order = [("baseline", self.baseline), ("candidate", self.candidate)]
            turned = reversed(order) if len(self.pairs) % 2 else order
            runs = {side: self.measure(arm, next(self._numbers)) for side, arm in turned}
        else:
            runs = {"candidate": self.measure(self.candidate, next(self._numbers))}
        self._latest |= {side: run.measurement for side, run in runs.items()}
        patient = sum(not pair.counts for pair in self.pairs) < min(self.plan.most, FIRST_END)
        baseline = runs["baseline"] if isinstance(self.baseline, Arm) else self.baseline
        pair = _pair(baseline, runs["candidate"], patient=patient)
        self.pairs.append(pair)
        if pair.counts:
            for side, run in runs.items():
                self._phases[side].append(run.phases)
        self.on_pair(pair, len(self.log_ratios))

    def _median_phases(self, side: str) -> dict[PhaseName, float]:
        if side == "baseline" and isinstance(self.baseline, RecordedBaseline):
            return dict(self.baseline.phases)
        runs = self._phases[side]
        names = dict.fromkeys(name for run in runs for name in run)
        return {name: statistics.median(run.get(name, 0.0) for run in runs) for name in names}


def _pair(baseline: ArmRun | RecordedBaseline, candidate: ArmRun, *, patient: bool) -> GatePair:
    """The two as a pair; ``patient``: set it aside if others used the machine much more during one of them."""
    load = baseline.other_cores if isinstance(baseline, ArmRun) else 0.0
    uneven = isinstance(baseline, ArmRun) and abs(load - candidate.other_cores) > UNEVEN_LOAD * baseline.cores
    return GatePair(
        baseline_s=baseline.step_s,
        candidate_s=candidate.step_s,
        baseline_other_cores=load,
        candidate_other_cores=candidate.other_cores,
        counts=not (uneven and patient),
    )
