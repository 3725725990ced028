"""From a trace's metrics to the Report that all renderers and other programs read (kind ``trace``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timezone
from itertools import islice
from typing import Any

import numpy as np

from unstall.diagnose.findings import findings
from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.patterns.base import Features
from unstall.diagnose.thresholds import CHANGED
from unstall.diagnose.trace_notes import notes as notes_on
from unstall.diagnose.trace_notes import unread
from unstall.records.report import Finding, Report
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization
from unstall.records.trace import TraceChange, TraceFacts, TraceRank, TraceStep, TraceTime
from unstall.records.vocabulary import NO_VERDICT, PatternName
from unstall.trace.features import TraceFeatures
from unstall.trace.hosttime import phases
from unstall.trace.kernels import Total
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.ranks import Ranks
from unstall.trace.regions import regions
from unstall.trace.replay.whatif import parse
from unstall.trace.timeline import problem_lines

STANDARD_WHAT_IFS = ("launch=0", "sync=0", "host=0", "data=0", "copies=overlapped", "nccl=0.5x", "nccl=overlapped")
"""Predicted for every trace; those that would gain nothing are left out of the report."""

_MOST_STEPS = 1000
_MOST_NAMES = 20


def report(ranks: Ranks, command: Sequence[str], *, what_ifs: Sequence[str] = (), notes: Sequence[str] = ()) -> Report:
    """Diagnose a run.

    Args:
        ranks: of the same run.
        command: what was typed, for the report.
        what_ifs: more predictions, as in :mod:`unstall.trace.replay.whatif`.
        notes: lines to put before the report's own.

    Raises:
        TraceError: when a what-if cannot be read, or names nothing in the trace.
    """
    if not any(summary.devices for summary in ranks.summaries):
        unasked = ["no what-if can be predicted: there is no device work to replay"] if what_ifs else []
        return _without_device(ranks, command, [*notes, *unasked])
    device = TraceFeatures(ranks.with_device())
    use = Utilization(gpu=[busy for summary in device.ranks.summaries for busy in summary.busy])
    ranked = findings(Features(device=device), use)
    return _assemble(device, use, ranked, figures(device, what_ifs), command, [*notes, *notes_on(device)])


def _assemble(
    device: TraceFeatures,
    use: Utilization,
    ranked: list[Finding],
    trace: TraceFacts,
    command: Sequence[str],
    notes: list[str],
) -> Report:
    metrics = device.metrics
    flops = metrics.flops if metrics.flops is not None and metrics.flops.complete else None
    return Report(
        kind="trace",
        run=_run_info(device.ranks, command, notes),
        throughput=Throughput(
            steps_per_s=1 / device.step_s,
            step_s=_step_time(device.ranks),
            flops_per_s=flops.per_step / device.step_s if flops else None,
            mfu=flops.mfu if flops else None,
            flops_coverage=flops.coverage if flops else None,
        ),
        utilization=use,
        phases=phases(metrics),
        verdict=ranked[0],
        findings=ranked,
        trace=trace,
    )


def _run_info(ranks: Ranks, command: Sequence[str], notes: list[str]) -> RunInfo:
    first = ranks.summaries[0]
    world = max((summary.world_size or 1) for summary in ranks.summaries)
    began = datetime.fromtimestamp(first.origin_ns / 1e9 if _is_date(first.origin_ns) else 0, timezone.utc)
    return RunInfo(
        id=os.path.basename(first.path),
        command=[*command],
        started=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=max(summary.total_ns for summary in ranks.summaries) / 1e9,
        steps=first.steps,
        exit_code=None,
        environment={"gpus": first.gpus, "trace": first.source, **first.versions},
        world_size=max(world, len(ranks)),
        notes=list(dict.fromkeys(notes)),
    )


def _is_date(origin_ns: int) -> bool:
    """Whether it counts from 1970: clocks that count from a machine's start are younger than 2000."""
    return 946_684_800 < origin_ns / 1e9 < 32_503_680_000


def _step_time(ranks: Ranks) -> StepTime:
    seconds = np.concatenate([summary.durations_ns for summary in ranks.summaries]) / 1e9
    return StepTime(mean=ranks.step_s, p50=float(np.median(seconds)), p95=float(np.percentile(seconds, 95)))


def pattern_of_use() -> dict[str, PatternName]:
    """The pattern that each use of a device's time is."""
    return {use: pattern.name for pattern in all_patterns().values() for use in pattern.device_uses}


def figures(device: TraceFeatures, what_ifs: Sequence[str]) -> TraceFacts:
    """What a trace shows of its devices, for the report; TraceError when a what-if cannot be read."""
    metrics = device.metrics
    asked = [_change(device, text) for text in what_ifs]
    standard = [_change(device, text) for text in STANDARD_WHAT_IFS if text not in what_ifs]
    worth = sorted((change for change in standard if change.gain > CHANGED), key=lambda change: -change.gain)
    return TraceFacts(
        files=[summary.path for summary in device.ranks.summaries],
        source=metrics.timeline.source,
        devices=[name for summary in device.ranks.summaries for name in summary.devices],
        marked_steps=metrics.windows.marked,
        device=device.shares,
        queue=_queue(metrics),
        kernels=_kernels(metrics),
        step_variation=metrics.step_variation,
        replay_error=device.replay.error,
        replay_steps=device.replay.steps,
        critical_path=device.replay.critical,
        critical_operators=dict(islice(device.replay.critical_operators.items(), _MOST_NAMES)),
        what_ifs=[*asked, *worth],
        steps=_steps(metrics),
        operators=_times(metrics, metrics.kernels.by_operator()),
        top_kernels=_times(metrics, metrics.kernels.by_kernel()),
        waits=_waits(metrics),
        copies=_copies(metrics),
        regions=regions(metrics, pattern_of_use())[:_MOST_NAMES],
        ranks=_ranks(device) if len(device.ranks) > 1 else [],
        unread=unread(device.ranks),
    )


def _change(device: TraceFeatures, text: str) -> TraceChange:
    gain = device.gain(text)
    return TraceChange(what_if=str(parse(text)), gain=gain, step_s=device.step_s / gain)


def _queue(metrics: TimelineMetrics) -> dict[str, float]:
    queue = metrics.queue
    if queue.prompt_share is None:
        return {}
    p50, p90 = np.percentile(queue.delay_ns, (50, 90)) / 1e9
    depth = float(np.mean(queue.depth_over(metrics.windows.whole)[0]))
    return {
        "prompt_share": queue.prompt_share,
        "launch_to_start_p50_s": float(p50),
        "launch_to_start_p90_s": float(p90),
        "depth_mean": depth,
    }


def _kernels(metrics: TimelineMetrics) -> dict[str, float]:
    sizes = metrics.kernels.sizes
    if sizes is None:
        return {}
    return {
        "per_step": metrics.kernels_per_step,
        "mean_s": sizes.mean / 1e9,
        "p50_s": sizes.p50 / 1e9,
        "p90_s": sizes.p90 / 1e9,
        "small_share": sizes.small,
        "graph_share": metrics.graph_share,
    }


def _steps(metrics: TimelineMetrics) -> list[TraceStep]:
    windows, parts = metrics.windows, metrics.breakdown
    numbers = metrics.timeline.steps.number if windows.marked else np.zeros(1, np.int64)
    depth = metrics.queue.depth_over(windows.spans)
    names = [field.name for field in fields(parts)]
    return [
        TraceStep(
            number=int(numbers[i]),
            step_s=float(windows.dur_ns[i] / 1e9),
            shares={name: float(getattr(parts, name)[i]) for name in names},
            queue_depth=[round(float(value), 2) for value in depth[i]],
        )
        for i in range(min(len(windows), _MOST_STEPS))
    ]


def _time(metrics: TimelineMetrics, name: str, total_ns: float, count: float, **more: Any) -> TraceTime:
    """An entry of the report, from sums over all steps."""
    steps = len(metrics.windows)
    share = total_ns / metrics.windows.total_ns
    return TraceTime(name=name, share=share, mean_s=total_ns / steps / 1e9, count=count / steps, **more)


def _times(metrics: TimelineMetrics, totals: list[Total]) -> list[TraceTime]:
    return [_time(metrics, total.name, total.ns, total.count) for total in totals[:_MOST_NAMES]]


def _waits(metrics: TimelineMetrics) -> list[TraceTime]:
    steps = len(metrics.windows)
    return [
        _time(
            metrics,
            site.operator or site.call,
            site.blocked_ns,
            site.count,
            idle_s=site.idle_ns / steps / 1e9,
            detail=site.call,
        )
        for site in metrics.waits[:_MOST_NAMES]
    ]


def _copies(metrics: TimelineMetrics) -> list[TraceTime]:
    return [
        _time(
            metrics,
            f"{group.direction.name}, {group.memory.name.lower()}",
            group.device_ns,
            group.count,
            bytes=group.bytes / len(metrics.windows),
            detail=f"{group.blocking} blocked the host, {group.tiny} tiny",
        )
        for group in metrics.copies
    ]


def _ranks(device: TraceFeatures) -> list[TraceRank]:
    matched, late_share = device.ranks.matched, device.ranks.late_share
    result = []
    for index, summary in enumerate(device.ranks.summaries):
        waits = float(matched.wait_ns[:, index].sum()) if matched is not None else 0.0
        result.append(
            TraceRank(
                rank=device.ranks.name(index),
                file=summary.path,
                step_s=summary.step_s,
                busy=summary.shares["busy"],
                communication=summary.shares["communication"],
                waits=waits / summary.total_ns,
                late=float(late_share[index]) if late_share is not None else 0.0,
            )
        )
    return result


def _without_device(ranks: Ranks, command: Sequence[str], notes: Sequence[str]) -> Report:
    """A trace of the host alone: there is no device to diagnose, and that is said."""
    metrics = ranks.metrics(0)
    verdict = Finding(
        pattern=NO_VERDICT,
        headroom=1.0,
        headroom_known_by="estimated",
        confidence="low",
        evidence=["no GPU activity at all in this trace: nothing can be said about a device"],
        advice=[
            "if the program used a GPU, record with ProfilerActivity.CUDA as well",
            "a program on the CPU alone: unstall run PROGRAM",
        ],
    )
    return Report(
        kind="trace",
        run=_run_info(ranks, command, [*notes, "the trace holds no GPU activity", *problem_lines(unread(ranks))]),
        throughput=Throughput(steps_per_s=1 / metrics.windows.step_s, step_s=_step_time(ranks)),
        utilization=Utilization(gpu=[]),
        phases=phases(metrics),
        verdict=verdict,
        findings=[verdict],
    )
