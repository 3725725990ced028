"""What a report says of a run as a whole, and the report of a run in which no step was seen.

Without NumPy: a program that has nothing to diagnose ends as fast as it began.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from unstall.records.measurements import Measurement
from unstall.records.observations import Observation
from unstall.records.report import Finding, Report
from unstall.records.run import RunInfo, Throughput, Utilization
from unstall.records.vocabulary import NO_VERDICT


@dataclass(frozen=True)
class RunContext:
    """What is known of a run beside its measurement."""

    id: str
    command: list[str]
    started: str
    exit_code: int | None
    environment: dict[str, Any]
    observation: Observation
    notes: list[str] = field(default_factory=list)
    modules: bool = False
    """Whether the time of each module was asked for."""
    attached: bool = False
    """Whether it was recorded while it was running already."""


def info(run: RunContext, notes: list[str], measurement: Measurement | None) -> RunInfo:
    """The run, for the report."""
    observation = run.observation
    return RunInfo(
        id=run.id,
        command=[word.encode("utf-8", "replace").decode() for word in run.command],
        started=run.started,
        duration_s=max(0.0, observation.ended - observation.began),
        steps=measurement.steps if measurement else 0,
        exit_code=None if observation.stopped else run.exit_code,
        environment=run.environment,
        warmup_steps=measurement.warmup if measurement else 0,
        attached=run.attached,
        world_size=max(measurement.world_size, len(measurement.ranks)) if measurement else 1,
        notes=notes,
    )


def without_steps(run: RunContext) -> Report:
    """A report that says that no step was seen, and what to do."""
    why = "no optimizer step, model call, batch or environment step repeated"
    advice = "mark the loop: `for batch in unstall.steps(loader):` counts its iterations"
    if run.exit_code and not run.observation.stopped:
        why = f"the program ended with exit code {run.exit_code} before its first step"
        advice = "get it to run first: its output says why it ended"
    finding = Finding(
        pattern=NO_VERDICT,
        headroom=1.0,
        headroom_known_by="estimated",
        confidence="low",
        evidence=[why],
        advice=[advice],
    )
    observation = run.observation
    peaks: dict[float, int] = {}
    for point in observation.points:
        peaks[point.t] = peaks.get(point.t, 0) + point.rss_bytes
    return Report(
        kind="run",
        run=info(run, [f"no step was seen: {why}", *run.notes], None),
        throughput=Throughput(steps_per_s=None),
        utilization=Utilization(rss_peak_bytes=max(peaks.values(), default=None)),
        phases=[],
        verdict=finding,
        findings=[finding],
    )
