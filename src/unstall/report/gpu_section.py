"""What the GPU window of a run shows of the device, in a few lines of the terminal report."""

from __future__ import annotations

from unstall.records.report import Report
from unstall.records.trace import TraceFacts
from unstall.report import promise
from unstall.report.device_labels import DEVICE_USES
from unstall.report.layout import Page
from unstall.report.thresholds import NOTABLE_USE
from unstall.text import units

_BUSY = {"communication": "only communicates", "copies": "only copies"}
_WIDE = 70


def add(page: Page, report: Report, rows: int) -> None:
    """The device's time by use, the best predicted change, and up to so many parts of the program."""
    trace = report.trace
    if trace is None:
        return
    page.phrases("GPU", [*_step(trace), f"busy {units.percent(trace.device['busy'])}", *_uses(trace)])
    page.phrases("What if", [f"{change.what_if} → {promise.factor(change.gain)}" for change in trace.what_ifs[:rows]])
    parts(page, trace, rows)


def parts(page: Page, trace: TraceFacts, rows: int) -> None:
    """A line a part of the program, the largest first; nothing where there is only one."""
    shown = [region for region in trace.regions if region.share >= NOTABLE_USE][:rows]
    if len(shown) < 2:
        return
    rows_of = [
        (
            region.name,
            units.seconds(region.mean_s),
            *(units.percent(share) for share in (region.share, region.busy, region.exposed)),
            region.pattern or "mixed",
        )
        for region in shown
    ]
    header = ("", "a step", "share", "busy", "exposed", "pattern")
    columns = range(len(header)) if page.width >= _WIDE else (0, 2, 3, 5)
    page.table("Parts", [header[i] for i in columns], [[row[i] for i in columns] for row in rows_of])


def _step(trace: TraceFacts) -> list[str]:
    if not units.known(trace.device_step_s):
        return []
    return [f"{units.seconds(trace.device_step_s)} a step by CUDA events"]


def _uses(trace: TraceFacts) -> list[str]:
    """What the device does when it does not compute, the largest first, each with what it means."""
    phrases = []
    for name, share in sorted(trace.device.items(), key=lambda item: -item[1]):
        if name not in DEVICE_USES or name == "compute" or share < NOTABLE_USE:
            continue
        percent = units.percent(share)
        phrases.append(f"{_BUSY[name]} {percent}" if name in _BUSY else f"idle {percent}: {DEVICE_USES[name][1]}")
    return phrases[:4]
