"""The study of a program: observe it once, then try, in order, what may tell most, until the budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unstall.benchmark.rundir import RunDir
from unstall.model import parts
from unstall.records.measurements import Measurement
from unstall.records.report import Report
from unstall.simplify import blocks, choose, gauge, ranks, seams
from unstall.simplify.blocks import Enough, Pace, Paused, Switched, run_blocks
from unstall.simplify.interventions.base import key_of
from unstall.simplify.laboratory import Ended, Interrupted, Laboratory, Stuck, Waiter
from unstall.simplify.observe import observe
from unstall.simplify.trial import Outcome, Trial

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured
    from unstall.model.timed import Timed
    from unstall.records.observations import Observation
    from unstall.sandbox import Sandbox

_SEGMENT_S = 0.5
_SEGMENT_STEPS = 4
_LONGEST_EPOCH_S = 2.5  # whole epochs of up to this make a segment; of longer ones, the steps between their ends
_WARM_UP_STEPS, _WARM_UP_S = 6, 1.0
_TRIAL_S = 40.0  # the most that one trial may take, where others wait
_FIRST, _OF_SETTINGS = Enough(), Enough(most=4)
_SHARPER, _SHARPER_BLOCKS, _SHARPEST_BLOCKS = 0.05, 4, 24
"""With time left: the interval's half-width over the effect, so many blocks more at a time, so many in all."""
_WORTH_SHARPENING = 1.1
_ALONE_S = 2.5
_BARREN_STARTS = 2  # of the program, without a whole block in between: then it is too short, or does not go on
_WORTH_DEEPER = 1.1
_BLOCKS_OF_A_GAUGE = 2  # that must fit into what is left after it, about


@dataclass
class Findings:
    """All that a study found."""

    report: Report
    """Of the first run, as ``unstall run`` would tell it."""
    measured: Measured | None
    outcomes: list[Outcome] = field(default_factory=list)
    untried: list[Trial] = field(default_factory=list)
    data_batches_per_s: float | None = None
    """The data alone, read as fast as the loader gives."""
    interrupted: bool = False
    """A person had enough: what was found by then is all there is."""
    output: Path | None = None
    """What the program wrote in its first run."""
    seen: Observation | None = None
    """That run from outside, to be kept."""
    runs: int = 1
    """How often the program was started."""
    timed: dict[str, Timed | None] = field(default_factory=dict)
    """What was gauged of functions before their trials, by name."""

    @property
    def measurement(self) -> Measurement | None:
        return self.measured.measurement if self.measured else None


class Study:
    """Runs a program's experiments. ``tell`` is called with what is going on, for the progress line."""

    def __init__(
        self,
        line: list[str],
        words: list[str],
        directory: RunDir,
        sandbox: Sandbox,
        wait: Waiter,
        tell: Callable[[str], None],
        budget_s: float,
    ):
        self.line, self.words, self.directory, self.sandbox = line, words, directory, sandbox
        self.wait, self.tell = wait, tell
        self.deadline = time.monotonic() + budget_s
        self._lab: Laboratory | None = None
        self._children = 0
        self._kind = ""
        self._timed: dict[str, Timed | None] = {}

    def run(self, requested: list[Trial]) -> Findings:
        """Observe, then try what was requested, or what observation gives cause for.

        Raises Interrupted when a signal comes before there is anything to tell; later ones end the trials.
        """
        self.tell("a first run, only watched")
        report, measured, outcome, output = observe(self.line, self.words, self.directory, self.sandbox, self.wait)
        found = Findings(report, measured, output=output, seen=outcome.observation, timed=self._timed)
        if found.measurement is None:
            return found
        self._kind = found.measurement.kind
        try:
            self._try_all(found, requested)
        except Interrupted:
            found.interrupted = True
        finally:
            self._close()
        found.runs += self._children
        return found

    def _try_all(self, found: Findings, requested: list[Trial]) -> None:
        assert found.measured is not None and found.measurement is not None
        pace = pace_of(found.measured)
        loader = found.measurement.loader
        seen = parts.of(found.measurement)
        todo = [choose.of_loader(choose.placed(one, seen), loader.workers if loader else 0) for one in requested]
        todo = todo or choose.trials(found.report, found.measurement)
        deeper_asked = False
        while todo:
            # What cannot have three blocks any more would tell nothing.
            if found.outcomes and time.monotonic() + 3 * pace.block_s > self.deadline:
                found.untried = todo
                return
            trial = todo.pop(0)
            self.tell(f"{len(found.outcomes)} of {len(found.outcomes) + len(todo) + 1} tried · {trial.name}")
            found.outcomes.append(Outcome(trial))
            to_come = len(todo) + (0 if deeper_asked else 1)
            share = (self.deadline - time.monotonic()) / (1 + to_come)
            enough = _FIRST if trial.settings is None else _OF_SETTINGS
            self._try(found.outcomes[-1], found.measurement, pace, max(share, _TRIAL_S), enough)
            if trial.intervention == "cached" and found.data_batches_per_s is None:
                found.data_batches_per_s = self._data_alone()
            if not deeper_asked and not any(one.component and one.intervention != "delay" for one in todo):
                deeper_asked = True
                todo = [*deeper(found.outcomes), *todo]
        self._sharpen(found.outcomes, found.measurement, pace)

    def _sharpen(self, outcomes: list[Outcome], measurement: Measurement, pace: Pace) -> None:
        """What is left of the budget goes to the ceilings, a few blocks at a time to the one that is known least."""
        while time.monotonic() + _SHARPER_BLOCKS * pace.block_s < self.deadline:
            wide = [one for one in outcomes if _can_be_sharper(one)]
            if not wide:
                return
            outcome = max(wide, key=_vagueness)
            self.tell(f"{outcome.trial.name}, for a narrower interval")
            before = outcome.blocks
            more = Enough(len(outcome.log_ratios) + _SHARPER_BLOCKS, _SHARPER)
            self._try(outcome, measurement, pace, math.inf, more)
            if outcome.blocks == before:
                return

    def _try(self, outcome: Outcome, measurement: Measurement, pace: Pace, seconds: float, enough: Enough) -> None:
        """All blocks of one trial, within these seconds; a program that ends meanwhile is started again.

        One that cannot be started again takes nothing from what was measured before.
        """
        trial = outcome.trial
        refusal = self._refusal(trial, measurement)
        if refusal is not None:
            outcome.failure = refusal
            return
        deadline = min(self.deadline, time.monotonic() + seconds)
        barren, known = 0, outcome.blocks > 0
        while True:
            before = outcome.blocks, len(self._timed)
            try:
                for _ in self._blocks(trial, outcome, measurement, pace, deadline, enough):
                    self._check_problems(outcome)
                    if outcome.failure:
                        break
                self._check_problems(outcome)
                return
            except (Ended, Stuck) as error:
                self._check_problems(outcome)
                why = self._why(error)
                self._close()
                barren = barren + 1 if (outcome.blocks, len(self._timed)) == before else 0
                failed = isinstance(error, Ended) and error.status > 0
                given_up = barren >= (1 if failed else _BARREN_STARTS)
                if given_up and not known:
                    outcome.failure = outcome.failure or why
                if outcome.failure or given_up or time.monotonic() > deadline:
                    return

    def _refusal(self, trial: Trial, measurement: Measurement) -> str | None:
        """Why the program has no place for these settings, if so."""
        settings = trial.settings or {}
        if "loader" in settings and measurement.loader is None:
            return "no batch of a torch DataLoader was seen"
        if "ranks" in settings and ranks.alone(self.line) is None:
            return "only the ranks that torchrun starts, by --nproc-per-node, can be fewer"
        return None

    def _blocks(
        self, trial: Trial, outcome: Outcome, measurement: Measurement, pace: Pace, deadline: float, enough: Enough
    ) -> Iterator[None]:
        lab = self._laboratory()
        loader = measurement.loader
        if trial.settings is not None:
            with self._start(trial.settings) as other:
                other.warm_up(_WARM_UP_STEPS, _WARM_UP_S)
                try:
                    yield from run_blocks(Paused(lab, other, pace), outcome, pace, deadline, enough)
                finally:
                    lab.resume()
        elif trial.placebo and loader is not None:
            prefetch = loader.prefetch_factor or 2
            with blocks.placebo(lab, loader.workers, loader.service_cpu_s, prefetch) as burners:
                yield from run_blocks(Switched(lab, trial, pace, burners), outcome, pace, deadline, enough)
        else:
            self._gauge(trial, measurement, pace)
            pair = Switched(lab, trial, pace)
            pair.to_arm()  # what cannot be done shows at once, and stubs get their answers
            self._check_problems(outcome, in_force=True)
            if not outcome.failure:
                yield from run_blocks(pair, outcome, pace, deadline, enough)

    def _gauge(self, trial: Trial, measurement: Measurement, pace: Pace) -> None:
        """What a prediction should know of the trial's functions, once for each, where time for its blocks is left."""
        for function in gauge.functions_of(trial):
            name = function["name"]
            if name not in self._timed and time.monotonic() + _BLOCKS_OF_A_GAUGE * pace.block_s < self.deadline:
                self._timed[name] = None  # whatever becomes of it: a program that ends meanwhile is not asked again
                self._timed[name] = gauge.gauge(self._laboratory(), function, pace, measurement.l2_bytes)

    def _laboratory(self) -> Laboratory:
        """The child that is running, or a new one."""
        if self._lab is None:
            self._lab = self._start({})
            self._lab.warm_up(_WARM_UP_STEPS, _WARM_UP_S)
        return self._lab

    def _start(self, settings: dict[str, object]) -> Laboratory:
        self._children += 1
        folder = self.directory.path / f"child-{self._children}"
        line = ranks.alone(self.line) if "ranks" in settings else self.line
        assert line is not None
        line = ranks.beside(line) if self._lab is not None else line
        return Laboratory(line, folder, self.sandbox, self.wait, kind=self._kind, settings=settings)

    def _close(self) -> None:
        if self._lab is not None:
            self._lab.end()
            self._lab = None

    def _check_problems(self, outcome: Outcome, *, in_force: bool = False) -> None:
        """What the interventions themselves told, in whichever process; once in force, all must have found theirs."""
        if self._lab is None or outcome.trial.settings is not None:
            return
        keys = {key_of(one) for one in (*outcome.trial.arm, *outcome.trial.base)}
        told = [fact for fact in self._lab.facts("intervention") if fact["key"] in keys]
        for fact in told:
            if fact["what"] == "problem":
                outcome.failure = outcome.failure or str(fact["text"])
            elif fact["what"] == "note" and fact["text"] not in outcome.notes:
                outcome.notes.append(str(fact["text"]))
        found = {fact["key"] for fact in told if fact["what"] == "found"}
        arm = {key_of(one) for one in outcome.trial.arm}
        outcome.places |= {fact["text"] for fact in told if fact["what"] == "found" and fact["key"] in arm}
        for one in outcome.trial.arm if in_force else ():
            if "name" in one and key_of(one) not in found:
                what = "nothing of the kind" if one["name"] in seams.KINDS else "no function"
                outcome.failure = outcome.failure or f"{what} {one['name']} is alive in the program"

    @staticmethod
    def _why(error: Ended | Stuck) -> str:
        """Why a trial cannot go on, for a person."""
        if isinstance(error, Stuck):
            return f"with it the program does not go on: {error}"
        if error.status:
            return f"with it the program fails: {error.words or error}"
        return "the program ends before anything can be compared: give it more steps"

    def _data_alone(self) -> float | None:
        """Batches a second of the main loader, without the model; None where that cannot be had."""
        self.tell("the data alone")
        try:
            return self._laboratory().data_alone(_ALONE_S)
        except (Ended, Stuck):
            self._close()
            return None


def _can_be_sharper(outcome: Outcome) -> bool:
    """Whether it is a ceiling worth knowing better, of which more blocks can be had."""
    trial, ratio = outcome.trial, outcome.ratio
    if outcome.failure or ratio is None or trial.component is None or trial.settings or trial.intervention == "delay":
        return False
    return (
        ratio.value > _WORTH_SHARPENING
        and not outcome.is_tight(_SHARPER)
        and outcome.blocks < _SHARPEST_BLOCKS
    )  # fmt: skip


def _vagueness(outcome: Outcome) -> float:
    """The interval's half-width over the effect."""
    assert outcome.ratio is not None
    return outcome.ratio.half_width / math.log(outcome.ratio.value)


def pace_of(measured: Measured) -> Pace:
    """Segments long enough for a mean, short enough for many; settling as long as the loader's queues are deep."""
    measurement = measured.measurement
    step_s, loader = measurement.step.mean, measurement.loader
    steps = max(_SEGMENT_STEPS, math.ceil(_SEGMENT_S / step_s) if step_s else 0)
    epoch = _epoch(measured)
    whole = epoch is not None and epoch * step_s <= _LONGEST_EPOCH_S
    if epoch is not None and whole:
        steps = epoch * (1 + math.ceil(steps / epoch))
    settle_steps, settle_s = 1, 0.0
    if loader is not None and loader.workers:
        depth = loader.workers * (loader.prefetch_factor or 2)
        settle_steps = 1 + math.ceil(depth / max(loader.batches_per_step, 0.1))
        settle_s = 1.2 * loader.service_s * (loader.prefetch_factor or 2) + 0.1
    return Pace(
        step_s=step_s,
        steps=min(steps, 2000),
        seconds=_SEGMENT_S,
        settle_steps=settle_steps,
        settle_s=min(settle_s, 10.0),
        whole_epochs=whole,
        cores=measurement.cores,
    )


def _epoch(measured: Measured) -> int | None:
    """Steps from one epoch's end (or validation) to the next, where the first run saw at least two."""
    ends = np.flatnonzero(measured.loop.gap)
    return int(np.median(np.diff(ends))) if len(ends) >= 2 else None


def deeper(outcomes: list[Outcome]) -> list[Trial]:
    """With the costliest component gone, the others tried again: what was hidden behind it shows."""
    free = [one for one in outcomes if one.state == "measured" and one.trial.component and one.trial.share is None]
    free.sort(key=lambda one: -(one.ratio.value if one.ratio else 0.0))
    if not free or free[0].ratio is None or free[0].ratio.low < _WORTH_DEEPER:
        return []
    first = free[0]
    others = [one.trial for one in free[1:] if not _overlap(first, one)]
    return [choose.interaction(first.trial, second) for second in others[:2]]


def _overlap(first: Outcome, second: Outcome) -> bool:
    """The same function under two names; or a function of the loader, and the whole data: one goes with the other."""
    whole = "cached" in (first.trial.intervention, second.trial.intervention)
    of_data = whole and first.trial.touches_data and second.trial.touches_data
    return of_data or not first.places.isdisjoint(second.places)
