"""A recorded run of one form of the program, in the sandbox, and all that the remedies want to know of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from unstall.benchmark import launcher
from unstall.benchmark.environment import usable_cores
from unstall.benchmark.rundir import RunDir
from unstall.child.trial.clock import KINDS
from unstall.diagnose.run_report import make_report
from unstall.optimize.comparison import TrialFailed, last_line
from unstall.optimize.context import RemedyContext
from unstall.optimize.observed import read_runtime_facts
from unstall.optimize.program import Program
from unstall.optimize.thresholds import (
    DIAGNOSIS_PATIENCE_S,
    DIAGNOSIS_S,
    LEAST_DIAGNOSED_STEPS,
    PAUSES_PATIENCE,
    RECURS,
)
from unstall.optimize.trial_runner import TrialRunner, Variant
from unstall.records.report import Report
from unstall.records.vocabulary import OPTIMIZER


@dataclass(frozen=True)
class Diagnosis:
    """One form of the program, diagnosed."""

    context: RemedyContext
    kind: str
    """The kind of step, one of :data:`unstall.child.trial.clock.KINDS`."""

    @property
    def report(self) -> Report:
        """The report of the recorded run."""
        return self.context.report

    @property
    def step_s(self) -> float:
        """Mean seconds of a step."""
        return self.context.measurement.step.mean

    @property
    def trains(self) -> bool:
        """Whether an optimizer makes steps."""
        return self.context.measurement.share(OPTIMIZER.name) > 0

    @property
    def batch_size(self) -> int | None:
        """Samples in a batch of the main loop's loader."""
        loader = self.context.measurement.loader
        return loader.batch_size if loader else None

    @property
    def workers(self) -> int:
        """Workers of that loader."""
        loader = self.context.measurement.loader
        return loader.workers if loader else 0


def diagnose(runner: TrialRunner, program: Program, variant: Variant, *, seconds: float = DIAGNOSIS_S) -> Diagnosis:
    """Record a variant for some seconds and measure it. Raises TrialFailed when there is nothing to measure."""
    folder = runner.make_folder()
    words = runner.sandbox.command(runner.words(variant, folder))
    options = launcher.RecordingOptions(
        extensions=["unstall.child.trial.extension"],
        settings={"settings": dict(variant.settings), "probe": {}},
        environ=lambda env: runner.sandbox.environment(runner.around(env)),
        entrance=words[: -len(runner.line)],
        output=folder / "output.txt",
    )
    started = datetime.now(timezone.utc)
    stop = _Stop(seconds)

    def prepare_forks() -> None:
        if (folder / "probe.jsonl").exists():  # it has imported torch, and will again
            runner.use_forks()

    def look(session: Any) -> None:
        stop(session)
        if session.stopped:  # the end of its process, and the report, take about as long
            prepare_forks()

    outcome = launcher.launch_trial(words, folder, options, look)
    prepare_forks()  # where it came to its end before it was stopped
    directory = RunDir(folder.name, folder, None)
    recorded = make_report(list(program.words), directory, started, outcome)
    report, measured = recorded.report, recorded.measured
    if measured is None:
        printed = (folder / "output.txt").read_text(errors="replace")
        reason = report.run.notes[-1] if report.run.notes else "no loop was found in it"
        raise TrialFailed(f"there is nothing to optimize: {reason} (exit code {outcome.status}{last_line(printed)})")
    kind = measured.measurement.kind
    if kind not in KINDS:
        kind = OPTIMIZER.name if measured.measurement.share(OPTIMIZER.name) else "batch"
    context = RemedyContext(
        program=program,
        report=report,
        measurement=measured.measurement,
        sources=variant.sources,
        runtime=read_runtime_facts(folder / "probe.jsonl"),
        cores=max(1, math.floor(usable_cores())),
    )
    return Diagnosis(context, kind)


class _Stop:
    """Ends a recorded run once its loop was seen for long enough: two evaluations, where these take much of it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        self.seconds = seconds
        self.clock = clock
        self.loop_began: float | None = None
        self.looked = 0.0
        self.paused_s = 0.0
        """So far, in pauses between steps."""
        self.pauses = 0
        self.in_pause = False

    def __call__(self, session: Any) -> None:
        now = self.clock()
        if session.steps > 0 and self.loop_began is None:
            self.loop_began = now
        self._count_pauses(session.stands_still(now), now)
        long_enough = (
            self.loop_began is not None
            and now - self.loop_began > self.seconds
            and session.steps >= LEAST_DIAGNOSED_STEPS
            and not (self._evaluates(now) and now - self.loop_began < PAUSES_PATIENCE * self.seconds)
        )
        too_long = now - session.began > DIAGNOSIS_PATIENCE_S
        if (long_enough or too_long) and session.wanted is None:
            session.wanted = 1

    def _count_pauses(self, stands_still: bool, now: float) -> None:
        self.pauses += stands_still and not self.in_pause
        self.paused_s += now - self.looked if stands_still and self.in_pause else 0.0
        self.in_pause, self.looked = stands_still, now

    def _evaluates(self, now: float) -> bool:
        """Whether the loop stands still for much of the time, and did not yet do so twice to the end."""
        assert self.loop_began is not None
        much = self.paused_s > RECURS * (now - self.loop_began)
        return much and (self.in_pause or self.pauses < 2)
