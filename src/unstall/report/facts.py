"""The report's figures as short phrases; what was not measured yields no phrase at all."""

from __future__ import annotations

import signal
from typing import NamedTuple

from unstall.records.report import Phase, Report, RunInfo, Utilization
from unstall.text import units
from unstall.text.sanitize import plain

_NOTABLE_S = 0.5
_NOTABLE_SHARE = 0.05
_NOTABLE_BYTES = 1000.0
_NOTABLE_CORES = 0.05


class PhaseList(NamedTuple):
    """Phases worth a line each, biggest first, and the rest to tell in one line."""

    shown: list[Phase]
    folded: list[Phase]


def phases(report: Report, fold: float = 0.01) -> PhaseList:
    """The phases by share; those under ``fold`` (0..1) apart, unless it is only one."""
    measured = [p for p in report.phases if units.known(p.share) and units.known(p.mean_s)]
    ordered = sorted(measured, key=lambda phase: -phase.share)
    small = [phase for phase in ordered if phase.share < fold]
    if len(small) < 2:
        return PhaseList(ordered, [])
    return PhaseList(ordered[: -len(small)], small)


def phase_note(phase: Phase) -> str:
    """What a plug-in's phase is, and how much of a sizeable one was blocked, and on the network; empty if little."""
    notes = [plain(phase.what)] if phase.what else []
    if phase.share < _NOTABLE_SHARE or phase.mean_s <= 0:
        return ", ".join(notes)
    blocked = min(phase.blocked_s / phase.mean_s, 1.0)
    network = min(phase.network_s / phase.mean_s, 1.0)
    if blocked >= 0.1:
        notes.append(f"{units.percent(blocked)} blocked")
    if network >= 0.1:
        size = f" ({units.bytes_(phase.network_bytes)})" if phase.network_bytes > 0 else ""
        notes.append(f"{units.percent(network)} on network{size}")
    return ", ".join(notes)


def step_times(report: Report) -> list[str]:
    """Mean, median and 95th percentile of the step, in seconds."""
    times = report.throughput.step_s
    if times is None or not units.known(times.mean):
        return []
    percentiles = (("p50", times.p50), ("p95", times.p95))
    told = [f"{name} {units.seconds(value)}" for name, value in percentiles if units.known(value)]
    account = report.account
    if account is not None:
        told.append(f"shares are of {units.seconds(account.step_s)}, without the time that other programs took")
    return [f"{units.seconds(times.mean)} a step", *told]


def throughput(report: Report) -> list[str]:
    """Rates over the measured steps, FLOP/s and MFU."""
    speed = report.throughput
    rates = (
        (speed.steps_per_s, "steps"),
        (speed.batches_per_s, "batches"),
        (speed.samples_per_s, "samples"),
        (speed.env_steps_per_s, "env steps"),
    )
    told = [units.rate(value, noun) for value, noun in rates if units.known(value)]
    if units.known(speed.flops_per_s):
        told.append(units.flops(speed.flops_per_s))
    if units.known(speed.mfu):
        told.append(f"MFU {units.share(speed.mfu)}")
    if units.known(speed.flops_coverage) and len(told) and units.known(speed.flops_per_s):
        told.append(f"FLOPs counted for {units.percent(speed.flops_coverage)} of the operators")
    return told


def utilization(report: Report) -> list[str]:
    """How busy cores, devices, memory, network and disk were."""
    use = report.utilization
    told = []
    if units.known(use.cpu):
        told.append(f"CPU {units.percent(use.cpu)}{_of_cores(report.run)}")
    told += _gpus(report)
    if units.known(use.run_delay):
        told.append(f"main thread waiting for a core {units.percent(use.run_delay)}")
    told += _memory("memory", use.rss_peak_bytes, use.rss_growth_bytes_per_step)
    told += _memory("GPU memory", use.gpu_memory_peak_bytes, use.gpu_memory_growth_bytes_per_step)
    told += _traffic(use)
    others = use.other_processes_cores
    if units.known(others) and others >= _NOTABLE_CORES:
        told.append(f"other processes {units.number(others)} cores")
    return told


def run(report: Report) -> list[str]:
    """What was run: steps measured and left out, duration, how it ended."""
    info = report.run
    told = [f"{info.steps:,} {_plural('step', info.steps)} measured"]
    if info.warmup_steps:
        told.append(f"{info.warmup_steps:,} warm-up left out")
    if info.world_size > 1:
        told.append(f"{info.world_size} ranks")
    told.append(f"{units.seconds(info.duration_s)} in all")
    told.append(exit_phrase(info.exit_code))
    return told


def exit_phrase(code: int | None) -> str:
    """How the program ended; a negative code is the signal that killed it, as in subprocess."""
    if code is None:
        return "stopped by unstall after the steps asked for"
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
        (times.before_first_batch_s, "before the first batch"),
        (times.worker_start_s, "starting workers"),
        (times.warmup_s, "warming up"),
        (times.epoch_gaps_s, "between epochs"),
        (times.after_last_step_s, "after the last step"),
    )
    least = max(_NOTABLE_S, _NOTABLE_SHARE * report.run.duration_s)
    return [f"{units.seconds(t)} {what}" for t, what in spans if units.known(t) and t >= least]


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


def _memory(what: str, peak: float | None, growth: float | None) -> list[str]:
    told = []
    if units.known(peak):
        told.append(f"{units.bytes_(peak)} peak")
    if units.known(growth) and growth >= _NOTABLE_BYTES:
        told.append(f"+{units.bytes_(growth)}/step")
    return [f"{what} {', '.join(told)}"] if told else []


def _traffic(use: Utilization) -> list[str]:
    amounts = (
        (use.network_bytes_per_step, "network"),
        (use.disk_read_bytes_per_step, "disk read"),
        (use.disk_write_bytes_per_step, "disk write"),
    )
    return [
        f"{what} {units.bytes_(amount)}/step"
        for amount, what in amounts
        if units.known(amount) and amount >= _NOTABLE_BYTES
    ]


def _plural(noun: str, count: float) -> str:
    return noun if count == 1 else f"{noun}s"
