"""`unstall simplify`: watch the program once, then try, in order, what may tell most, until the budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unstall.model import function_shares
from unstall.records.measurements import Measurement
from unstall.simplify import plan, thresholds
from unstall.simplify.abba import StoppingRule
from unstall.simplify.budget import ExperimentBudget
from unstall.simplify.controlled_process import StopRequested
from unstall.simplify.experiment import Experiment, ExperimentResult
from unstall.simplify.experiment_runner import ExperimentRunner, pace_of

if TYPE_CHECKING:
    from unstall.benchmark.measure import LoopMeasurement
    from unstall.simplify.program_starter import FirstRun, ProgramStarter


@dataclass
class SimplifyResult:
    """All that was found."""

    first: FirstRun
    results: list[ExperimentResult] = field(default_factory=list)
    untried: list[Experiment] = field(default_factory=list)
    interrupted: bool = False
    """A person had enough: what was found by then is all there is."""
    runs: int = 1
    """How often the program was started."""

    @property
    def measurement(self) -> Measurement | None:
        """What the first run measured; None where it saw no loop."""
        return self.first.measured.measurement if self.first.measured else None


class Simplifier:
    """Finds what each component costs. ``announce`` is called with what is going on, for the progress line.

    ``keep`` is called with all that is known, after the first run and after each experiment.
    """

    def __init__(
        self,
        starter: ProgramStarter,
        budget: ExperimentBudget,
        announce: Callable[[str], None] = lambda what: None,
        keep: Callable[[SimplifyResult], None] = lambda simplified: None,
    ):
        self.starter, self.budget, self.announce, self.keep = starter, budget, announce, keep

    def run(self, requested: list[Experiment], known: Sequence[ExperimentResult] = ()) -> SimplifyResult:
        """Watch, then try what was requested, or what the first run gives cause for, but for what is known already.

        Raises StopRequested when a signal comes before there is anything to report; later ones end the experiments.
        """
        self.announce("a first run, only watched")
        simplified = SimplifyResult(self.starter.watch(), list(known))
        self.keep(simplified)
        measured = simplified.first.measured
        if measured is None:
            self.starter.wait(0.0)  # a signal that ended the program may have come to both
            return simplified
        runner = ExperimentRunner(self.starter, measured.measurement, pace_of(measured), self.budget)
        try:
            self._try_all(runner, simplified, self._planned(requested, simplified.first, measured))
            self._sharpen(runner, simplified.results)
        except StopRequested:
            simplified.interrupted = True
        finally:
            runner.close()
        simplified.runs = self.starter.started
        return simplified

    def _planned(self, requested: list[Experiment], first: FirstRun, measured: LoopMeasurement) -> list[Experiment]:
        measurement = measured.measurement
        if not requested:
            return plan.experiments(first.report, measurement)
        shares, workers = function_shares.of(measurement), measurement.loader.workers if measurement.loader else 0
        return [plan.for_loader(plan.placed(experiment, shares), workers) for experiment in requested]

    def _try_all(self, runner: ExperimentRunner, simplified: SimplifyResult, to_try: list[Experiment]) -> None:
        """Each in turn, with an equal part of what is left; once the ceilings are known, those behind the highest."""
        asked_deeper = False
        while True:
            known = [result.experiment for result in simplified.results]
            if known and not asked_deeper and not any(left.component and left.share is None for left in to_try):
                asked_deeper = True
                to_try = [*plan.deeper(simplified.results), *to_try]
            to_try = [experiment for experiment in to_try if experiment not in known]
            if not to_try:
                return
            if simplified.results and not self.budget.allows(thresholds.BLOCKS_TO_BEGIN * runner.pace.block_s):
                simplified.untried = to_try
                return
            experiment = to_try.pop(0)
            tried = len(simplified.results)
            self.announce(f"{tried} of {tried + len(to_try) + 1} tried · {experiment.name}")
            result = ExperimentResult(experiment)
            simplified.results.append(result)
            share_s = self.budget.left / (1 + len(to_try) + (0 if asked_deeper else 1))
            rule = StoppingRule() if experiment.settings is None else StoppingRule(thresholds.MOST_BLOCKS_OF_SETTINGS)
            runner.run(result, rule, max(share_s, thresholds.EXPERIMENT_S))
            self.keep(simplified)

    def _sharpen(self, runner: ExperimentRunner, results: list[ExperimentResult]) -> None:
        """What is left of the budget goes to the ceilings, a few blocks at a time to the one that is known least."""
        while self.budget.allows(thresholds.SHARPER_BLOCKS * runner.pace.block_s):
            vague = [result for result in results if _can_be_sharper(result)]
            if not vague:
                return
            result = max(vague, key=_vagueness)
            self.announce(f"{result.experiment.name}, for a narrower interval")
            before = result.blocks
            runner.run(result, StoppingRule(len(result.log_ratios) + thresholds.SHARPER_BLOCKS, thresholds.SHARPER))
            if result.blocks == before:
                return


def _can_be_sharper(result: ExperimentResult) -> bool:
    """Whether it is a ceiling worth knowing better, of which more blocks can be had."""
    experiment, ratio = result.experiment, result.ratio
    is_ceiling = experiment.component is not None and not experiment.settings and experiment.share is None
    if ratio is None or not is_ceiling or result.blocks >= thresholds.SHARPEST_BLOCKS:
        return False
    return ratio.value > thresholds.WORTH_SHARPENING and not result.is_tight(thresholds.SHARPER)


def _vagueness(result: ExperimentResult) -> float:
    """The interval's half-width over the effect."""
    assert result.ratio is not None
    return result.ratio.half_width / math.log(result.ratio.value)
