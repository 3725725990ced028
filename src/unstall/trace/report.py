"""From a trace's facts to the Report that all renderers and other programs read (kind ``trace``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import islice

import numpy as np

from unstall.records.report import Finding, Report, RunInfo, StepTime, Throughput, Utilization
from unstall.records.trace import TraceChange, TraceFacts, TraceRank, TraceRegion, TraceStep, TraceTime
from unstall.trace.facts import Facts
from unstall.trace.hosttime import phases
from unstall.trace.kernels import Total
from unstall.trace.look import Look
from unstall.trace.notes import notes as notes_on
from unstall.trace.notes import unread
from unstall.trace.ranks import Ranks
from unstall.trace.regions import regions
from unstall.trace.timeline import problem_lines
from unstall.trace.verdict import findings

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
    if not any(one.devices for one in ranks.summaries):
        unasked = ["no what-if can be answered: there is no device's work to replay"] if what_ifs else []
        return _without_device(ranks, command, [*notes, *unasked])
    look = Look(ranks.with_device())
    found = findings(look)
    return _assemble(look, found, _trace_facts(look, what_ifs), command, [*notes, *notes_on(look)])


def _assemble(look: Look, found: list[Finding], trace: TraceFacts, command: Sequence[str], notes: list[str]) -> Report:
    facts = look.facts
    flops = facts.flops if facts.flops is not None and facts.flops.complete else None
    return Report(
        kind="trace",
        run=_run_info(look.ranks, command, notes),
        throughput=Throughput(
            steps_per_s=1 / look.step_s,
            step_s=_step_time(look.ranks),
            flops_per_s=flops.per_step / look.step_s if flops else None,
            mfu=flops.mfu if flops else None,
            flops_coverage=flops.coverage if flops else None,
        ),
        utilization=Utilization(gpu=[busy for one in look.ranks.summaries for busy in one.busy]),
        phases=phases(facts),
        verdict=found[0],
        findings=found,
        trace=trace,
    )


def _run_info(ranks: Ranks, command: Sequence[str], notes: list[str]) -> RunInfo:
    first = ranks.summaries[0]
    world = max((one.world_size or 1) for one in ranks.summaries)
    began = datetime.fromtimestamp(first.origin_ns / 1e9 if _is_date(first.origin_ns) else 0, timezone.utc)
    return RunInfo(
        id=os.path.basename(first.path),
        command=[*command],
        started=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=max(one.total_ns for one in ranks.summaries) / 1e9,
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
    seconds = np.concatenate([one.durations_ns for one in ranks.summaries]) / 1e9
    return StepTime(mean=ranks.step_s, p50=float(np.median(seconds)), p95=float(np.percentile(seconds, 95)))


def _trace_facts(look: Look, what_ifs: Sequence[str]) -> TraceFacts:
    facts = look.facts
    asked = [_change(look, text) for text in what_ifs]
    standard = [_change(look, text) for text in STANDARD_WHAT_IFS if text not in what_ifs]
    worth = sorted((change for change in standard if change.gain > 1.005), key=lambda change: -change.gain)
    return TraceFacts(
        files=[one.path for one in look.ranks.summaries],
        source=facts.timeline.source,
        devices=[name for one in look.ranks.summaries for name in one.devices],
        marked_steps=facts.windows.marked,
        device=look.shares,
        queue=_queue(facts),
        kernels=_kernels(facts),
        step_variation=facts.step_variation,
        replay_error=look.replay.error,
        replay_steps=look.replay.steps,
        critical_path=look.replay.critical,
        critical_operators=dict(islice(look.replay.critical_operators.items(), _MOST_NAMES)),
        what_ifs=[*asked, *worth],
        steps=_steps(facts),
        operators=_times(facts, facts.kernels.by_operator()),
        top_kernels=_times(facts, facts.kernels.by_kernel()),
        waits=_waits(facts),
        copies=_copies(facts),
        regions=[
            TraceRegion(
                name=one.name,
                share=one.share,
                mean_s=one.share * facts.windows.step_s,
                busy=one.busy,
                exposed=one.exposed,
                pattern=one.pattern,
                parts=one.parts,
            )
            for one in regions(facts)[:_MOST_NAMES]
        ],
        ranks=_ranks(look) if len(look.ranks) > 1 else [],
        unread=unread(look.ranks),
    )


def _change(look: Look, text: str) -> TraceChange:
    prediction = look.replay.predict(text)
    return TraceChange(what_if=str(prediction.what_if), gain=prediction.gain, step_s=look.step_s / prediction.gain)


def _queue(facts: Facts) -> dict[str, float]:
    queue = facts.queue
    if queue.prompt_share is None:
        return {}
    p50, p90 = np.percentile(queue.delay_ns, (50, 90)) / 1e9
    depth = float(np.mean(queue.depth_over(facts.windows.whole)[0]))
    return {
        "prompt_share": queue.prompt_share,
        "launch_to_start_p50_s": float(p50),
        "launch_to_start_p90_s": float(p90),
        "depth_mean": depth,
    }


def _kernels(facts: Facts) -> dict[str, float]:
    sizes = facts.kernels.sizes
    if sizes is None:
        return {}
    return {
        "per_step": facts.kernels_per_step,
        "mean_s": sizes.mean / 1e9,
        "p50_s": sizes.p50 / 1e9,
        "p90_s": sizes.p90 / 1e9,
        "small_share": sizes.small,
        "graph_share": facts.graph_share,
    }


def _steps(facts: Facts) -> list[TraceStep]:
    from dataclasses import fields

    windows, parts = facts.windows, facts.breakdown
    numbers = facts.timeline.steps.number if windows.marked else np.zeros(1, np.int64)
    depth = facts.queue.depth_over(windows.spans)
    names = [field.name for field in fields(parts)]
    return [
        TraceStep(
            number=int(numbers[i]),
            step_s=float(windows.dur_ns[i] / 1e9),
            shares={name: float(getattr(parts, name)[i]) for name in names},
            queue_depth=[round(float(one), 2) for one in depth[i]],
        )
        for i in range(min(len(windows), _MOST_STEPS))
    ]


def _times(facts: Facts, totals: list[Total]) -> list[TraceTime]:
    steps = len(facts.windows)
    return [
        TraceTime(
            name=total.name,
            share=total.ns / facts.windows.total_ns,
            mean_s=total.ns / steps / 1e9,
            count=total.count / steps,
        )
        for total in totals[:_MOST_NAMES]
    ]


def _waits(facts: Facts) -> list[TraceTime]:
    steps = len(facts.windows)
    return [
        TraceTime(
            name=site.operator or site.call,
            share=site.blocked_ns / facts.windows.total_ns,
            mean_s=site.blocked_ns / steps / 1e9,
            count=site.count / steps,
            idle_s=site.idle_ns / steps / 1e9,
            detail=site.call,
        )
        for site in facts.waits[:_MOST_NAMES]
    ]


def _copies(facts: Facts) -> list[TraceTime]:
    steps = len(facts.windows)
    return [
        TraceTime(
            name=f"{group.direction.name}, {group.memory.name.lower()}",
            share=group.device_ns / facts.windows.total_ns,
            mean_s=group.device_ns / steps / 1e9,
            count=group.count / steps,
            bytes=group.bytes / steps,
            detail=f"{group.blocking} blocked the host, {group.tiny} tiny",
        )
        for group in facts.copies
    ]


def _ranks(look: Look) -> list[TraceRank]:
    matched, late = look.ranks.matched, look.ranks.late_share
    result = []
    for index, one in enumerate(look.ranks.summaries):
        waits = float(matched.wait_ns[:, index].sum()) if matched is not None else 0.0
        result.append(
            TraceRank(
                rank=look.ranks.name(index),
                file=one.path,
                step_s=one.step_s,
                busy=one.shares["busy"],
                communication=one.shares["communication"],
                waits=waits / one.total_ns,
                late=float(late[index]) if late is not None else 0.0,
            )
        )
    return result


def _without_device(ranks: Ranks, command: Sequence[str], notes: Sequence[str]) -> Report:
    """A trace of the host alone: there is no device to diagnose, and that is said."""
    facts = ranks.facts(0)
    verdict = Finding(
        pattern="healthy",
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
        throughput=Throughput(steps_per_s=1 / facts.windows.step_s, step_s=_step_time(ranks)),
        utilization=Utilization(gpu=[]),
        phases=phases(facts),
        verdict=verdict,
        findings=[verdict],
    )
