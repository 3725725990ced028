"""A recorded run of one form of the program, in the sandbox, and all that the remedies want to know of it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from unstall.benchmark import launcher
from unstall.benchmark.environment import usable_cores
from unstall.benchmark.rundir import RunDir
from unstall.diagnose.run_report import make_report
from unstall.optimize.child.clock import KINDS
from unstall.optimize.comparison import TrialFailed, last_line
from unstall.optimize.context import (
    ObservedLoader,
    ObservedModelCall,
    ObservedOptimizer,
    ObservedThreadSetting,
    RemedyContext,
    RuntimeFacts,
)
from unstall.optimize.program import Program
from unstall.optimize.source.places import CallSite
from unstall.optimize.trial_runner import TrialRunner, Variant
from unstall.records.report import Report

_WANTED_S = 12.0  # of steps under observation
_PATIENCE_S = 150.0


@dataclass(frozen=True)
class Diagnosis:
    """One form of the program, diagnosed."""

    context: RemedyContext
    kind: str
    """Of step, one of :data:`unstall.optimize.child.clock.KINDS`."""

    @property
    def report(self) -> Report:
        """The report of the recorded run."""
        return self.context.report

    @property
    def step_s(self) -> float:
        """Mean seconds of a step."""
        return self.context.measurement.step.mean

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


def diagnose(program: Program, runner: TrialRunner, variant: Variant, *, seconds: float = _WANTED_S) -> Diagnosis:
    """Record a variant for some seconds and measure it. Raises TrialFailed when there is nothing to measure."""
    folder = runner.make_folder()
    words = runner.sandbox.command(runner.words(variant, folder))
    options = launcher.Options(
        extensions=["unstall.optimize.child.extension"],
        settings={"settings": dict(variant.settings), "probe": {}},
        environ=runner.sandbox.environment,
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
    context = RemedyContext(
        program=program,
        report=report,
        measurement=measured.measurement,
        sources=variant.sources,
        runtime=read_runtime_facts(folder / "probe.jsonl"),
        cores=max(1, math.floor(usable_cores())),
        settings=variant.settings,
    )
    return Diagnosis(context, kind)


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


def read_runtime_facts(path: Path) -> RuntimeFacts:
    """What the child side wrote of the program's loaders, optimizers and models; nothing where it cannot be read."""
    try:
        facts = [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError):
        facts = []
    loaders = {fact["id"]: fact for fact in facts if fact["kind"] == "loader"}
    iterated = dict.fromkeys(fact["id"] for fact in facts if fact["kind"] == "iterated")
    return RuntimeFacts(
        loaders=tuple(_observed(ObservedLoader, loaders[id]) for id in iterated if id in loaders),
        optimizers=tuple(_observed(ObservedOptimizer, fact) for fact in _of(facts, "optimizer")),
        model_calls=tuple(_observed(ObservedModelCall, fact) for fact in _of(facts, "model")),
        thread_settings=tuple(_observed(ObservedThreadSetting, fact) for fact in _of(facts, "threads")),
        threads=next((fact["threads"] for fact in _of(facts, "torch")), None),
    )


def _of(facts: Iterable[Mapping[str, Any]], kind: str) -> Iterable[Mapping[str, Any]]:
    return (fact for fact in facts if fact["kind"] == kind)


T = TypeVar("T", ObservedLoader, ObservedOptimizer, ObservedModelCall, ObservedThreadSetting)


def _observed(kind: type[T], fact: Mapping[str, Any]) -> T:
    """A fact of the child's as an object of this type; keys that it does not have are left out."""
    known = {field.name for field in fields(kind)}
    values = {name: value for name, value in fact.items() if name in known and value is not None}
    if "callers" in values:
        values["callers"] = tuple(map(_call_site, values["callers"]))
    if "shapes" in values:
        values["shapes"] = tuple(map(tuple, values["shapes"]))
    site = fact.get("site")
    return kind(call=_call_site(site) if site else None, **values)


def _call_site(site: Mapping[str, Any]) -> CallSite:
    span = site.get("span") or ()
    known = len(span) == 4 and None not in span
    return CallSite(Path(site["file"]), site["line"], site["function"], tuple(span) if known else None)
