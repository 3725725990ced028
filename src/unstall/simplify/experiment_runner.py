"""Runs experiments on a program, one after the other; a program that ends meanwhile is started again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from unstall.child.experiments.interventions.base import key_of
from unstall.records.measurements import Measurement
from unstall.simplify import thresholds
from unstall.simplify.abba import Pace, PausedConditions, StoppingRule, SwitchedConditions, run_blocks
from unstall.simplify.budget import ExperimentBudget
from unstall.simplify.controlled_process import ControlledProcess, ProgramEnded, ProgramStuck
from unstall.simplify.cpu_burner import CpuBurners
from unstall.simplify.experiment import Experiment, ExperimentResult

if TYPE_CHECKING:
    from unstall.benchmark.measure import LoopMeasurement
    from unstall.simplify.program_starter import ProgramStarter


class ExperimentRunner:
    """Takes an experiment's blocks, on a child that goes on from one experiment to the next."""

    def __init__(self, starter: ProgramStarter, measurement: Measurement, pace: Pace, budget: ExperimentBudget):
        """``measurement``: of the program as it is."""
        self.starter, self.measurement, self.pace, self.budget = starter, measurement, pace, budget
        self._process: ControlledProcess | None = None

    def run(self, result: ExperimentResult, rule: StoppingRule, seconds: float = math.inf) -> None:
        """Take blocks of the result's experiment until they are enough, within these seconds and the budget.

        A program that cannot be started again takes nothing from what was measured before.
        """
        refusal = self._refusal(result.experiment)
        if refusal is not None:
            result.failure = refusal
            return
        budget = self.budget.part(seconds)
        failed_starts, has_blocks = 0, result.blocks > 0
        while True:
            before = result.blocks
            try:
                for _ in self._blocks(result, budget, rule):
                    self._read_problems(result)
                    if result.failure:
                        break
                self._read_problems(result)
                return
            except (ProgramEnded, ProgramStuck) as error:
                self._read_problems(result)
                self.close()
                failed_starts = failed_starts + 1 if result.blocks == before else 0
                crashed = isinstance(error, ProgramEnded) and error.status > 0
                gives_up = failed_starts >= (1 if crashed else thresholds.STARTS_WITHOUT_BLOCK)
                if gives_up and not has_blocks:
                    result.failure = result.failure or _why(error)
                if result.failure or gives_up or budget.left < 0:
                    return

    def close(self) -> None:
        """End the child, if one is running."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def _refusal(self, experiment: Experiment) -> str | None:
        """Why the program has no place for the experiment's settings, if so."""
        settings = experiment.settings or {}
        if "loader" in settings and self.measurement.loader is None:
            return "no batch of a torch DataLoader was seen"
        return self.starter.refusal(settings)

    def _blocks(self, result: ExperimentResult, budget: ExperimentBudget, rule: StoppingRule) -> Iterator[None]:
        process, experiment, pace = self._running(), result.experiment, self.pace
        loader = self.measurement.loader
        if experiment.settings is not None:
            with self.starter.start(self.measurement.kind, experiment.settings, is_second=True) as other:
                other.warm_up(thresholds.WARM_UP_STEPS, thresholds.WARM_UP_S)
                try:
                    yield from run_blocks(PausedConditions(process, other, pace), result, pace, budget, rule)
                finally:
                    process.resume()
        elif experiment.placebo and loader is not None:
            with CpuBurners(
                process.recording,
                workers=loader.workers,
                seconds_per_batch=loader.service_cpu_s,
                prefetch=loader.prefetch_factor or 2,
            ) as burners:
                process.session.resources.ignore |= burners.pids  # they are no other program's
                conditions = SwitchedConditions(process, experiment, pace, burners)
                yield from run_blocks(conditions, result, pace, budget, rule)
        else:
            conditions = SwitchedConditions(process, experiment, pace)
            conditions.to_arm()  # what cannot be done shows at once, and stubs get their answers
            self._read_problems(result, in_force=True)
            if not result.failure:
                yield from run_blocks(conditions, result, pace, budget, rule)

    def _running(self) -> ControlledProcess:
        """The child that is running, or a new one."""
        if self._process is None:
            self._process = self.starter.start(self.measurement.kind, {}, is_second=False)
            self._process.warm_up(thresholds.WARM_UP_STEPS, thresholds.WARM_UP_S)
        return self._process

    def _read_problems(self, result: ExperimentResult, *, in_force: bool = False) -> None:
        """What the interventions reported, in whichever process; once in force, all must have found their functions."""
        experiment = result.experiment
        if self._process is None or experiment.settings is not None:
            return
        arm = {key_of(spec): spec for spec in experiment.arm}
        keys = {*arm, *map(key_of, experiment.base)}
        facts = [fact for fact in self._process.facts("intervention") if fact["key"] in keys]
        for fact in facts:
            if fact["what"] == "problem":
                result.failure = result.failure or str(fact["text"])
            elif fact["what"] == "note" and fact["text"] not in result.notes:
                result.notes.append(str(fact["text"]))
        answered = [fact for fact in facts if fact["what"] == "answered" and fact["key"] in arm]
        if answered and "cuda" not in self.measurement.model.device:  # a GPU may have hidden them
            result.answering_s = sum(fact["seconds"] for fact in answered) / sum(fact["steps"] for fact in answered)
        replaced_keys = {fact["key"] for fact in facts if fact["what"] == "found"}
        result.replaced |= {fact["text"] for fact in facts if fact["what"] == "found" and fact["key"] in arm}
        for key, spec in arm.items() if in_force else ():
            if "name" in spec and key not in replaced_keys:
                what = "no function" if "file" in spec else "nothing of the kind"
                result.failure = result.failure or f"{what} {spec['name']} is alive in the program"


def _why(error: ProgramEnded | ProgramStuck) -> str:
    """Why an experiment cannot go on, for a person."""
    if isinstance(error, ProgramStuck):
        return f"with it the program is stuck: {error}"
    if error.status:
        return f"with it the program fails: {error.last_line or error}"
    return "the program ends before anything can be compared: give it more steps"


def pace_of(measured: LoopMeasurement) -> Pace:
    """Segments long enough for a mean, short enough for many; settling as long as the loader's queues are deep."""
    measurement = measured.measurement
    step_s, loader = measurement.step.mean, measurement.loader
    steps = max(thresholds.SEGMENT_STEPS, math.ceil(thresholds.SEGMENT_S / step_s) if step_s else 0)
    epoch = _epoch(measured)
    is_whole = epoch is not None and epoch * step_s <= thresholds.LONGEST_EPOCH_S
    if epoch is not None and is_whole:
        steps = epoch * (1 + math.ceil(steps / epoch))
    settle_steps, settle_s = 1, 0.0
    if loader is not None and loader.workers:
        depth = loader.workers * (loader.prefetch_factor or 2)
        settle_steps = 1 + math.ceil(depth / max(loader.batches_per_step, 0.1))
        settle_s = 1.2 * loader.service_s * (loader.prefetch_factor or 2) + 0.1
    return Pace(
        step_s=step_s,
        steps=min(steps, thresholds.MOST_SEGMENT_STEPS),
        seconds=thresholds.SEGMENT_S,
        settle_steps=settle_steps,
        settle_s=min(settle_s, thresholds.LONGEST_SETTLING_S),
        whole_epochs=is_whole,
        cores=measurement.cores,
    )


def _epoch(measured: LoopMeasurement) -> int | None:
    """Steps from one epoch's end (or validation) to the next, where the first run saw at least two."""
    ends = np.flatnonzero(measured.loop.at_boundary)
    return int(np.median(np.diff(ends))) if len(ends) >= 2 else None
