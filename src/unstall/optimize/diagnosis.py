"""A recorded run of one form of the program, in the sandbox, and all that the remedies want to know of it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from unstall.benchmark import launcher
from unstall.benchmark.environment import usable_cores
from unstall.benchmark.rundir import RunDir
from unstall.diagnose.run_report import make_report
from unstall.optimize.case import Call, Case, Made, Probe
from unstall.optimize.child.clock import KINDS
from unstall.optimize.program import Program
from unstall.optimize.trial import TrialFailed, last_line
from unstall.optimize.workshop import Arm, Workshop
from unstall.records.report import Report

_WANTED_S = 12.0  # of steps under observation
_PATIENCE_S = 150.0


@dataclass
class Diagnosis:
    """One form of the program, diagnosed."""

    report: Report
    case: Case
    kind: str

    @property
    def step_s(self) -> float:
        """Mean seconds a step."""
        return self.case.measurement.step.mean

    @property
    def batch_size(self) -> int | None:
        """Samples in a batch of the main loop's loader."""
        loader = self.case.measurement.loader
        return loader.batch_size if loader else None

    @property
    def workers(self) -> int:
        """Workers of that loader."""
        loader = self.case.measurement.loader
        return loader.workers if loader else 0


def diagnose(program: Program, workshop: Workshop, arm: Arm, *, seconds: float = _WANTED_S) -> Diagnosis:
    """Record an arm for some seconds and measure it. Raises TrialFailed when there is nothing to measure."""
    folder = workshop.make_folder()
    words = workshop.sandbox.command(workshop.words(arm, folder))
    options = launcher.Options(
        extensions=["unstall.optimize.child.extension"],
        settings={"settings": dict(arm.settings), "probe": {}},
        environ=workshop.sandbox.environment,
        output=folder / "output.txt",
    )
    started = datetime.now(timezone.utc)
    outcome = launcher.launch(words, folder, options, _Stop(seconds))
    directory = RunDir(folder.name, folder, None)
    found = make_report(list(program.words), directory, started, outcome)
    report, measured = found.report, found.measured
    if measured is None:
        printed = (folder / "output.txt").read_text(errors="replace")
        reason = report.run.notes[-1] if report.run.notes else "no loop was found in it"
        raise TrialFailed(f"there is nothing to optimize: {reason} (exit code {outcome.status}{last_line(printed)})")
    kind = measured.measurement.kind
    if kind not in KINDS:
        kind = "optimizer" if measured.measurement.share("optimizer") else "batch"
    case = Case(
        program=program,
        report=report,
        measurement=measured.measurement,
        sources=arm.sources,
        probe=read_probe(folder / "probe.jsonl"),
        cores=max(1, math.floor(usable_cores())),
        settings=arm.settings,
    )
    return Diagnosis(report, case, kind)


class _Stop:
    """Ends a recorded run once its loop was seen for long enough."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.loop_began: float | None = None

    def __call__(self, session: Any) -> None:
        now = time.monotonic()
        if session.steps > 0 and self.loop_began is None:
            self.loop_began = now
        long_enough = self.loop_began is not None and now - self.loop_began > self.seconds and session.steps >= 12
        too_long = now - session.began > _PATIENCE_S
        if (long_enough or too_long) and session.wanted is None:
            session.wanted = 1


def read_probe(path: Path) -> Probe:
    """What the child side told of the program's loaders and optimizers."""
    try:
        facts = [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError):
        facts = []
    loaders = {fact["id"]: fact for fact in facts if fact["kind"] == "loader"}
    iterated = list(dict.fromkeys(fact["id"] for fact in facts if fact["kind"] == "iterated"))
    return Probe(
        loaders=tuple(_made(loaders[one]) for one in iterated if one in loaders),
        optimizers=tuple(_made(fact) for fact in _of(facts, "optimizer")),
        models=tuple(_made(fact) for fact in _of(facts, "model")),
        threads_set=tuple(_made(fact) for fact in _of(facts, "threads")),
        threads=next((fact["threads"] for fact in _of(facts, "torch")), None),
    )


def _of(facts: Iterable[Mapping[str, Any]], kind: str) -> Iterable[Mapping[str, Any]]:
    return (fact for fact in facts if fact["kind"] == kind)


def _made(fact: Mapping[str, Any]) -> Made:
    site = fact.get("site")
    if "callers" in fact:
        fact = {**fact, "callers": tuple(map(_call, fact["callers"]))}
    return Made(_call(site) if site else None, fact)


def _call(site: Mapping[str, Any]) -> Call:
    span = site.get("span")
    whole = tuple(span) if span and all(one is not None for one in span) else None
    return Call(Path(site["file"]), site["line"], site["function"], whole)  # type: ignore[arg-type]
