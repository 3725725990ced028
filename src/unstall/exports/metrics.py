"""The figures of a report that a dashboard wants, under one set of names for all exporters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from unstall.records.report import Report
from unstall.records.vocabulary import NO_VERDICT, UNEXPLAINED
from unstall.text.sanitize import sanitize_line


class Metric(NamedTuple):
    """One figure. Names and units are Prometheus's: base units, the unit last."""

    name: str
    unit: str
    help: str
    value: float
    labels: dict[str, str]


def metrics(report: Report) -> list[Metric]:
    """All figures of a report that are known and finite, the facts of the run last."""
    return [metric for metric in _all(report) if math.isfinite(metric.value)]


def facts(report: Report) -> dict[str, str]:
    """What identifies the run and its verdict, as short strings."""
    verdict, run = report.verdict, report.run
    culprit = verdict.culprit
    values = {
        "run": run.id,
        "kind": report.kind,
        "command": " ".join(run.command),
        "pattern": verdict.pattern if run.steps else "",
        "cause": verdict.cause or "",
        "culprit": culprit.label if culprit else "",
        "confidence": verdict.confidence,
        "revision": str(run.environment.get("git_revision") or ""),
    }
    return {name: sanitize_line(value) for name, value in values.items()}


def figures(report: Report) -> dict[str, float]:
    """The metrics as trackers of experiments name them: ``unstall/phase_seconds/data_wait``, the label's value last."""
    named = {}
    for metric in metrics(report):
        if metric.name != "unstall_run_info":
            named["/".join(["unstall", metric.name.removeprefix("unstall_"), *metric.labels.values()])] = metric.value
    return named


def parameters(report: Report) -> dict[str, str]:
    """The run, its verdict and its environment, for trackers of experiments."""
    described = {f"unstall/{name}": value for name, value in facts(report).items() if value}
    environment = report.run.environment.items()
    return described | {
        f"unstall/environment/{sanitize_line(name)}": sanitize_line(str(value)) for name, value in environment
    }


def _all(report: Report) -> Iterator[Metric]:
    for name, unit, text, value in _figures(report):
        if value is not None:
            yield Metric(name, unit, text, float(value), {})
    step = report.throughput.step_s
    if step is not None:
        for quantile, value in (("0.5", step.p50), ("0.95", step.p95)):
            labels = {"quantile": quantile}
            yield Metric("unstall_step_seconds", "s", "Time of a step without epoch boundary.", value, labels)
    for phase in report.phases:
        labels = {"phase": sanitize_line(phase.name)}
        yield Metric("unstall_phase_seconds", "s", "Part of the mean step on the main thread.", phase.mean_s, labels)
    for index, share in enumerate(report.utilization.gpu or ()):
        yield Metric("unstall_gpu_utilization_ratio", "1", "Share of time a GPU was busy.", share, {"gpu": str(index)})
    yield Metric("unstall_run_info", "1", "The run and its verdict, in labels.", 1.0, facts(report))


def _figures(report: Report) -> Iterator[tuple[str, str, str, float | None]]:
    rates, use, run = report.throughput, report.utilization, report.run
    yield "unstall_steps_per_second", "1/s", "Steps a second, over the measured steps.", rates.steps_per_s
    yield "unstall_samples_per_second", "1/s", "Samples a second, over the measured steps.", rates.samples_per_s
    yield "unstall_env_steps_per_second", "1/s", "Environment steps a second.", rates.env_steps_per_s
    yield "unstall_tokens_per_second", "1/s", "Tokens generated a second.", rates.tokens_per_s
    yield "unstall_mfu_ratio", "1", "Share of the peak floating-point rate that was used.", rates.mfu
    yield "unstall_step_mean_seconds", "s", "Time of the mean step.", rates.step_s.mean if rates.step_s else None
    yield "unstall_measured_steps", "1", "Steps that the figures rest on.", run.steps
    yield "unstall_run_duration_seconds", "s", "Wall time of the whole run.", run.duration_s
    yield "unstall_headroom_ratio", "1", "The ceiling: how many times faster without the culprit.", _headroom(report)
    for name, text, promised in (
        ("ceiling", "How many times faster without the culprit", report.verdict.ceiling),
        ("expected_gain", "How many times faster with the remedy that fits best", report.verdict.expected_gain),
    ):
        if promised is not None and report.run.steps:
            yield f"unstall_{name}_ratio", "1", f"{text}.", promised.value
            yield f"unstall_{name}_low_ratio", "1", f"{text}, lower end of its interval.", promised.low
            yield f"unstall_{name}_high_ratio", "1", f"{text}, upper end of its interval.", promised.high
    yield "unstall_cpu_utilization_ratio", "1", "Share of the usable cores that was busy.", use.cpu
    yield "unstall_run_delay_ratio", "1", "Share of the step the main thread waited for a core.", use.run_delay
    yield "unstall_rss_peak_bytes", "By", "Resident memory of the process tree at its peak.", use.rss_peak_bytes
    yield "unstall_other_processes_cores", "1", "Cores taken by other programs.", use.other_processes_cores


def _headroom(report: Report) -> float | None:
    blamed = report.verdict.pattern not in (UNEXPLAINED, NO_VERDICT)
    return report.verdict.headroom if report.run.steps and blamed else None
