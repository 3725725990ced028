"""What the GPU window of a run shows of the device, in a few lines of the terminal report."""

from __future__ import annotations

from unstall.records.report import Report
from unstall.records.trace import TraceFacts
from unstall.report import wording
from unstall.report.device_words import USES
from unstall.report.layout import Page
from unstall.text import units

_LEAST = 0.02
_BUSY = {"communication": "only communicates", "copies": "only copies"}
_WIDE = 70


def add(page: Page, report: Report, rows: int) -> None:
    """The device's time by use, the best predicted change, and up to so many parts of the program."""
    trace = report.trace
    if trace is None:
        return
    page.phrases("GPU", [*_step(trace), f"busy {units.percent(trace.device['busy'])}", *_uses(trace)])
    page.phrases("What if", [f"{one.what_if} → {wording.gain_factor(one.gain)}" for one in trace.what_ifs[:rows]])
    parts(page, trace, rows)


def parts(page: Page, trace: TraceFacts, rows: int) -> None:
    """A line a part of the program, the largest first; nothing where there is only one."""
    shown = [one for one in trace.regions if one.share >= _LEAST][:rows]
    if len(shown) < 2:
        return
    rows_of = [
        (
            one.name,
            units.seconds(one.mean_s),
            *(units.percent(share) for share in (one.share, one.busy, one.exposed)),
            one.pattern or "mixed",
        )
        for one in shown
    ]
    header = ("", "a step", "share", "busy", "exposed", "pattern")
    kept = range(len(header)) if page.width >= _WIDE else (0, 2, 3, 5)
    page.table("Parts", [header[i] for i in kept], [[row[i] for i in kept] for row in rows_of])


def _step(trace: TraceFacts) -> list[str]:
    if not units.known(trace.device_step_s):
        return []
    return [f"{units.seconds(trace.device_step_s)} a step by CUDA events"]


def _uses(trace: TraceFacts) -> list[str]:
    """What the device does when it does not compute, the largest first, each with what it means."""
    told = []
    for name, share in sorted(trace.device.items(), key=lambda item: -item[1]):
        if name not in USES or name == "compute" or share < _LEAST:
            continue
        percent = units.percent(share)
        told.append(f"{_BUSY[name]} {percent}" if name in _BUSY else f"idle {percent}: {USES[name][1]}")
    return told[:4]
