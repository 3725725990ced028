"""What the GPU window of a run shows of the device, in a few lines of the terminal report."""

from __future__ import annotations

from unstall.records import Report
from unstall.report import units
from unstall.report.layout import Page
from unstall.tracefigures import TraceFacts

USES = {
    "compute": ("computing", "kernels"),
    "communication": ("collective", "nothing is computed meanwhile"),
    "copies": ("copies", "nothing is computed meanwhile"),
    "idle_loader": ("idle: data", "the main loop waits for its next batch"),
    "idle_sync": ("idle: sync", "the host waits for the device"),
    "idle_queued": ("idle:queue", "submitted, and waits for another stream"),
    "idle_submitting": ("idle: late", "the host submits small work, too slowly"),
    "idle_host": ("idle: host", "the host does something else"),
    "idle_cold": ("idle: cold", "a kernel's code is loaded for the first time"),
}
"""The disjoint uses of the device's time: a label, and what it means."""

_LEAST = 0.02
_BUSY = {"compute": "computes", "communication": "only communicates", "copies": "only copies"}


def add(page: Page, report: Report, rows: int) -> None:
    """The device's time by use, the best predicted change, and up to so many parts of the program."""
    trace = report.trace
    if trace is None:
        return
    page.phrases("GPU", [*_step(trace), f"busy {units.percent(trace.device['busy'])}", *_uses(trace)])
    page.phrases("What if", [f"{one.what_if} → {units.factor(one.gain)}" for one in trace.what_ifs[:rows]])
    parts(page, trace, rows)


def parts(page: Page, trace: TraceFacts, rows: int) -> None:
    """A line a part of the program, the largest first; nothing where there is only one."""
    shown = [one for one in trace.regions if one.share >= _LEAST][:rows]
    if len(shown) < 2:
        return
    page.table(
        "Parts",
        ("", "a step", "share", "busy", "exposed", "pattern"),
        [
            (
                one.name,
                units.seconds(one.mean_s),
                *(units.percent(share) for share in (one.share, one.busy, one.exposed)),
                one.pattern or "mixed",
            )
            for one in shown
        ],
    )


def _step(trace: TraceFacts) -> list[str]:
    if not units.known(trace.device_step_s):
        return []
    return [f"{units.seconds(trace.device_step_s)} a step by CUDA events"]


def _uses(trace: TraceFacts) -> list[str]:
    """The uses of the device, the largest first, each with what it means."""
    told = []
    for name, share in sorted(trace.device.items(), key=lambda item: -item[1]):
        if name not in USES or share < _LEAST:
            continue
        percent = units.percent(share)
        told.append(f"{_BUSY[name]} {percent}" if name in _BUSY else f"idle {percent}: {USES[name][1]}")
    return told[:4]
