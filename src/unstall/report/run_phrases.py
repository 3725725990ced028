"""The report's figures as short phrases; what was not measured yields no phrase at all."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from unstall.records.communication import GroupCommunication, RankCommunication
from unstall.records.compiled import CompiledFrame
from unstall.records.report import LineTime, PhaseTime, Report
from unstall.records.run import Between, RunInfo, Throughput, Utilization
from unstall.report import wording
from unstall.report.thresholds import NOTABLE_BYTES, NOTABLE_CORES, NOTABLE_PART, NOTABLE_S, NOTABLE_SHARE, NOTABLE_SKEW
from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten


class PhaseList(NamedTuple):
    """Phases worth a line each, biggest first, and the small ones, which share one line."""

    shown: list[PhaseTime]
    folded: list[PhaseTime]


def phases(report: Report, fold: float = 0.01) -> PhaseList:
    """The phases by share; those under ``fold`` (0..1) apart, unless it is only one."""
    measured = [p for p in report.phases if units.known(p.share) and units.known(p.mean_s)]
    ordered = sorted(measured, key=lambda phase: -phase.share)
    small = [phase for phase in ordered if phase.share < fold]
    if len(small) < 2:
        return PhaseList(ordered, [])
    return PhaseList(ordered[: -len(small)], small)


def phase_note(phase: PhaseTime) -> str:
    """What a plug-in's phase is, whose code is in `other`, and how much was blocked, and on the network, if notable."""
    notes = [sanitize_line(phase.what)] if phase.what else []
    if phase.functions:
        named = (f"{shorten(sanitize_line(line.name), 30)} {units.percent(line.share)}" for line in phase.functions[:2])
        notes.append(", ".join(named))
    if phase.share < NOTABLE_SHARE or phase.mean_s <= 0:
        return ", ".join(notes)
    blocked = min(phase.blocked_s / phase.mean_s, 1.0)
    network = min(phase.network_s / phase.mean_s, 1.0)
    if blocked >= NOTABLE_PART:
        notes.append(f"{units.percent(blocked)} blocked")
    if network >= NOTABLE_PART:
        size = f" ({units.bytes_(phase.network_bytes)})" if phase.network_bytes > 0 else ""
        notes.append(f"{units.percent(network)} on network{size}")
    return ", ".join(notes)


def step_times(report: Report) -> list[str]:
    """Mean, median and 95th percentile of the step, in seconds."""
    times = report.throughput.step_s
    if times is None or not units.known(times.mean):
        return []
    percentiles = (("p50", times.p50), ("p95", times.p95))
    phrases = [f"{name} {units.seconds(value)}" for name, value in percentiles if units.known(value)]
    account, between = report.account, report.throughput.between
    if between is not None:
        phrases.append(between_steps(between))
    if account is not None:
        phrases.append(f"shares are of {units.seconds(account.step_s)}, without the time that other programs took")
    elif between is not None:
        phrases.append(f"shares are of {units.seconds(times.mean)}, with that")
    return [f"{units.seconds(training_step_s(report.throughput))} a {step_noun(report, 1)}", *phrases]


def training_step_s(speed: Throughput) -> float:
    """Seconds of the mean step, without what is between steps."""
    mean = speed.step_s.mean if speed.step_s else 0.0
    return mean - speed.between.mean_s if speed.between else mean


def between_steps(between: Between) -> str:
    """As "between steps: evaluate, train.py:80, 4 times 2.1 s, 33 ms a step"."""
    named = f"{_place(between)}, " if between.file else ""
    times = f"{between.count} {_plural('time', between.count)} {units.seconds(between.each_s)}"
    return f"between steps: {named}{times}, {units.seconds(between.mean_s)} a step"


def _place(line: LineTime | Between) -> str:
    return f"{sanitize_line(line.function)}, {sanitize_line(PurePath(line.file).name)}:{line.line}"


def throughput(report: Report) -> list[str]:
    """Rates over the measured steps, FLOP/s and MFU."""
    speed = report.throughput
    rates = (
        (speed.steps_per_s, step_noun(report, 2)),
        (speed.batches_per_s, "batches"),
        (speed.samples_per_s, "samples" if report.generation is None else "sequences"),
        (speed.env_steps_per_s, "env steps"),
        (speed.tokens_per_s, "tokens"),
    )
    phrases = [units.rate(value, noun) for value, noun in rates if units.known(value)]
    if units.known(speed.flops_per_s):
        phrases.append(units.flops(speed.flops_per_s))
    if units.known(speed.mfu):
        phrases.append(f"MFU {units.share(speed.mfu)}")
    if units.known(speed.flops_coverage) and len(phrases) and units.known(speed.flops_per_s):
        phrases.append(f"FLOPs counted for {units.percent(speed.flops_coverage)} of the operators")
    return phrases


def step_noun(report: Report, count: int) -> str:
    """A step as the framework calls it."""
    return _plural("step" if report.generation is None else "request", count)


def generation(report: Report) -> list[str]:
    """The mean request of ``generate()``: its size, time to the first token, time for each other; none without."""
    mean = report.generation
    if mean is None:
        return []
    others = mean.new_tokens - 1
    phrases = [
        f"{units.number(mean.sequences)} × {units.number(mean.prompt_tokens)} prompt tokens",
        f"prefill {units.seconds(mean.prefill_s)}",
    ]
    if others > 0:
        each = units.seconds(mean.decode_s / others)
        phrases.append(f"decode {units.seconds(mean.decode_s)}, {units.number(others)} × {each}")
    return phrases if mean.cached else [*phrases, "key-value cache off"]


def utilization(report: Report) -> list[str]:
    """How busy cores, devices, memory, network and disk were."""
    use = report.utilization
    phrases = []
    if units.known(use.cpu):
        phrases.append(f"CPU {units.percent(use.cpu)}{_of_cores(report.run)}")
    phrases += _gpus(report)
    if units.known(use.run_delay):
        phrases.append(f"main thread waiting for a core {units.percent(use.run_delay)}")
    phrases += _memory("memory", use.rss_peak_bytes, use.rss_growth_bytes_per_step)
    phrases += _memory("GPU memory", use.gpu_memory_peak_bytes, use.gpu_memory_growth_bytes_per_step)
    phrases += _traffic(use)
    other_cores = use.other_processes_cores
    if units.known(other_cores) and other_cores >= NOTABLE_CORES:
        phrases.append(f"other processes {units.number(other_cores)} cores")
    return phrases


def run(report: Report) -> list[str]:
    """What was run: steps measured and left out, duration, how it ended."""
    info = report.run
    phrases = [f"{info.steps:,} {step_noun(report, info.steps)} measured"]
    if info.warmup_steps:
        phrases.append(f"{info.warmup_steps:,} warm-up left out")
    if info.world_size > 1:
        phrases.append(f"{info.world_size} ranks")
    phrases.append(f"{units.seconds(info.duration_s)} in all")
    phrases.append("attached" if info.attached else exit_phrase(info.exit_code))
    return phrases


RANK_COLUMNS = ("step", "own work", "waits", "in group", "exposed", "hidden", "calls", "bytes")
"""Columns of a row for each rank and process group, after the rank's name; figures are a step's."""


def ranks(report: Report, most: int) -> list[tuple[str, ...]]:
    """A row for each group of each rank, the ranks that wait least first; at most so many ranks."""
    if report.communication is None:
        return []
    several_hosts = len({rank.host for rank in report.communication.ranks}) > 1
    by_wait = sorted(report.communication.ranks, key=lambda rank: rank.exposed_s)
    return [row for rank in by_wait[:most] for row in _rank_rows(rank, several_hosts)]


def _rank_rows(rank: RankCommunication, several_hosts: bool) -> list[tuple[str, ...]]:
    name = f"rank {rank.rank}" + (f" on {sanitize_line(rank.host)}" if several_hosts else "")
    own = (name, *(units.seconds(value) for value in (rank.step_s, rank.own_s, rank.exposed_s)))
    cells = [_group_cells(group) for group in rank.groups] or [("",) * 5]
    return [(*(own if i == 0 else ("", "", "", "")), *of_group) for i, of_group in enumerate(cells)]


def _group_cells(group: GroupCommunication) -> tuple[str, ...]:
    calls, moved = group.calls_per_step, group.bytes_per_step
    return (
        sanitize_line(group.name),
        units.seconds(group.exposed_s),
        units.seconds(group.hidden_s) if units.known(group.hidden_s) else "",
        units.number(calls) if units.known(calls) else "",
        units.bytes_(moved) if units.known(moved) else "",
    )


CALLBACK_COLUMNS = ("calls", "mean", "total", "of the run", "at")
"""Columns of a row for each event of a callback, after its name."""


def callbacks(report: Report, least: float = 0.0) -> list[tuple[str, ...]]:
    """A row for each event of a callback, the most time first; those under ``least`` (0..1) of the run left out."""
    by_time = sorted(report.callbacks, key=lambda callback: -callback.total_s)
    return [
        (
            sanitize_line(callback.name),
            f"{callback.calls:,}",
            units.seconds(callback.mean_s),
            units.seconds(callback.total_s),
            units.percent(callback.share),
            wording.location(callback.file, callback.line),
        )
        for callback in by_time
        if callback.share >= least
    ]


def compiled(report: Report) -> list[tuple[str, ...]]:
    """A row for each guard that failed and each break: function, graphs, compilations, place, why.

    The figures of a function stand in its first row.
    """
    rows: list[tuple[str, ...]] = []
    for frame in report.compiled:
        figures = (sanitize_line(frame.function), f"{frame.graphs}", f"{frame.compilations}×")
        for line, why in _reasons(frame):
            rows.append((*figures, wording.location(frame.file, line), sanitize_line(why)))
            figures = ("", "", "")
    return rows


def _reasons(frame: CompiledFrame) -> list[tuple[int, str]]:
    """(line, what torch says), what costs most first."""
    given_up = [(frame.line, f"given up, runs uncompiled: {frame.given_up}")] if frame.given_up else []
    again = [(frame.line, f"again: {reason}") for reason in frame.reasons if reason != frame.given_up]
    breaks = [(broken.line, f"break: {broken.reason or 'no reason known'}") for broken in frame.breaks]
    return [*given_up, *breaks, *again]


NODE_COLUMNS = ("ranks", "clock ahead", "error", "exit code")
"""Columns of a row for each node, after its name; the clocks are compared with the first node's."""


def nodes(report: Report, most: int) -> list[tuple[str, ...]]:
    """A row for each machine of a run with ``--gather``; at most so many."""
    rows = report.communication.nodes[:most] if report.communication is not None else []
    return [
        (
            sanitize_line(node.host),
            _span_of(node.ranks),
            units.seconds(node.clock_offset_s) if units.known(node.clock_offset_s) else "not known",
            units.seconds(node.clock_error_s) if units.known(node.clock_error_s) else "",
            "" if node.exit_code is None else str(node.exit_code),
        )
        for node in rows
    ]


def _span_of(ranks: Sequence[int]) -> str:
    """A node's ranks are consecutive, as launchers number them; else they are counted."""
    if len(ranks) > 1 and ranks[-1] - ranks[0] + 1 != len(ranks):
        return f"{len(ranks)} of {ranks[0]}-{ranks[-1]}"
    return f"{ranks[0]}-{ranks[-1]}" if len(ranks) > 1 else str(ranks[0]) if ranks else ""


def skew(report: Report) -> list[str]:
    """Who waits for whom, where the ranks wait unequally, and how well they scale."""
    communication = report.communication
    if communication is None or not units.known(communication.skew_s):
        return []
    scaling = []
    if units.known(communication.efficiency):
        scaling.append(f"scaling efficiency {units.percent(communication.efficiency)} at most (estimated)")
    longest = max((rank.exposed_s for rank in communication.ranks), default=0.0)
    if communication.skew_s < NOTABLE_SKEW * longest or longest <= 0:
        return ["all wait alike", *scaling]
    late = communication.waits_least
    skewed = f"skew {units.seconds(communication.skew_s)} a step"
    return [f"rank {late} waits least, so the others wait for it", skewed, *scaling]


def exit_phrase(code: int | None) -> str:
    """How the program ended; a negative code is the signal that killed it, as in subprocess."""
    if code is None:
        return "stopped by unstall after the requested steps"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def startup(report: Report) -> list[str]:
    """Notable wall time outside the measured steps: half a second and 5 % of the run at least."""
    times = report.startup
    if times is None:
        return []
    spans = (
        (times.before_first_batch_s, "before the first batch", times.set_up),
        (times.worker_start_s, "starting workers", None),
        (times.warmup_s, "warming up", None),
        (times.epoch_gaps_s, "between epochs", None),
        (times.after_last_step_s, "after the last step", times.wind_up),
    )
    least = max(NOTABLE_S, NOTABLE_SHARE * report.run.duration_s)
    phrases = []
    for t, span, line in spans:
        if units.known(t) and t >= least:
            phrases.append(f"{units.seconds(t)} {span}")
            phrases += [f"{units.percent(line.share)} of that in {_place(line)}"] if line is not None else []
    return phrases


def _of_cores(info: RunInfo) -> str:
    cores = info.environment.get("cpu_count")
    if isinstance(cores, bool) or not isinstance(cores, (int, float)):
        return ""
    return f" of {cores:g} {_plural('core', cores)}"


def _gpus(report: Report) -> list[str]:
    """Each device's utilisation, a range where there are many, "none here" where it is known so."""
    busy = [share for share in report.utilization.gpu or [] if units.known(share)]
    if len(busy) > 2:
        low, high = units.percent(min(busy)), units.percent(max(busy))
        return [f"{len(busy)} GPUs {low} to {high}"]
    if busy:
        return [f"GPU {index} {units.percent(share)}" for index, share in enumerate(busy)]
    return ["GPU none here"] if report.run.environment.get("gpus") == [] else []


def _memory(label: str, peak: float | None, growth: float | None) -> list[str]:
    phrases = []
    if units.known(peak):
        phrases.append(f"{units.bytes_(peak)} peak")
    if units.known(growth) and growth >= NOTABLE_BYTES:
        phrases.append(f"+{units.bytes_(growth)}/step")
    return [f"{label} {', '.join(phrases)}"] if phrases else []


def _traffic(use: Utilization) -> list[str]:
    amounts = (
        (use.network_bytes_per_step, "network"),
        (use.disk_read_bytes_per_step, "disk read"),
        (use.disk_write_bytes_per_step, "disk write"),
    )
    return [
        f"{label} {units.bytes_(amount)}/step"
        for amount, label in amounts
        if units.known(amount) and amount >= NOTABLE_BYTES
    ]


def _plural(noun: str, count: float) -> str:
    return noun if count == 1 else f"{noun}s"
