"""What the device did, of a report on a GPU: its time by use, step by step, and what a replay predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from unstall.report.device_labels import CRITICAL_PATH_KINDS
from unstall.report.html import series
from unstall.report.html.markup import render
from unstall.report.html.tables import Table
from unstall.report.templating import Markup
from unstall.text import units

if TYPE_CHECKING:
    from unstall.records.report import Report
    from unstall.records.trace import TraceFacts


DEVICE_USES = {
    "compute": "computing",
    "communication": "collectives, nothing computed meanwhile",
    "copies": "copies, nothing computed meanwhile",
    "idle_loader": "idle: the next batch is late",
    "idle_sync": "idle: the host waits for the device",
    "idle_queued": "idle: work waits for another stream or device",
    "idle_submitting": "idle: the host submits too slowly",
    "idle_host": "idle: the host does something else",
    "idle_cold": "idle: a kernel is loaded for the first time",
}
"""The disjoint uses of the device's time, in words."""

_LEAST = 0.0005


def section(report: Report, chart: dict[str, Any] | None) -> Markup | None:
    """The device's time by use, its steps, replayed changes, and where its time goes by name.

    ``chart``: the data of :func:`steps`, None where there is no chart.
    """
    trace = report.trace
    if trace is None:
        return None
    uses = [(name, trace.device[name]) for name in DEVICE_USES if trace.device.get(name, 0.0) > _LEAST]
    rows = [((DEVICE_USES[name], _colour(name)), units.percent(share)) for name, share in uses]
    return render(
        "device.html",
        about=_about(trace),
        bar=[(DEVICE_USES[name], _colour(name), share) for name, share in uses],
        by_use=Table("The device’s time over all steps, by use", ("use", ">share"), rows),
        steps=chart,
        tables=(_parts(trace), _changes(trace)),
        folds=(*_critical_path(trace), *_times(trace), _ranks(trace)),
    )


def steps(report: Report) -> dict[str, Any] | None:
    """For the chart: seconds of each use in each step, as a panel like those of the machine."""
    if report.trace is None or len(report.trace.steps) < 2:
        return None
    recorded = report.trace.steps
    used = [name for name in DEVICE_USES if any(step.shares.get(name, 0.0) > _LEAST for step in recorded)]
    if not used:
        return None
    closed = [*recorded, recorded[-1]]  # the last step is as wide as the others
    rows = [
        {
            "name": DEVICE_USES[name],
            "colour": _colour(name),
            "values": series.packed(np.array([step.shares.get(name, 0.0) * step.step_s for step in closed])),
        }
        for name in used
    ]
    return {
        "t": series.packed(np.arange(len(closed))),
        "bucket_s": 0,
        "panels": [{"title": "Step by step", "unit": "seconds", "x": "step", "stacked": True, "series": rows}],
    }


def _colour(use: str) -> str:
    """The class of its colour."""
    return f"u-{use.removeprefix('idle_')}"


def _about(trace: TraceFacts) -> str:
    devices = ", ".join(dict.fromkeys(trace.devices))
    shares = [("kernels under 20 µs", trace.kernels.get("small_share")), ("replay error", abs(trace.replay_error))]
    phrases = [f"{name} {units.percent(share)}" for name, share in shares if units.known(share)]
    count = trace.kernels.get("per_step")
    return " · ".join([*([devices] if devices else []), *([f"{count:,.0f} kernels a step"] if count else []), *phrases])


def _parts(trace: TraceFacts) -> Table:
    rows = [
        (
            region.name,
            *(units.percent(share) for share in (region.share, region.busy, region.exposed)),
            units.seconds(region.mean_s),
            region.pattern or "mixed",
        )
        for region in trace.regions
    ]
    header = ("`part", ">share", ">busy", ">exposed", ">a step", "pattern")
    return Table("The program’s parts: their time on the device, and what it is spent on", header, rows)


def _changes(trace: TraceFacts) -> Table:
    rows = [
        (change.what_if, units.factor(change.gain), units.seconds(change.step_s))
        for change in sorted(trace.what_ifs, key=lambda change: -change.gain)
    ]
    return Table("What a replay of the trace predicts", ("`change", ">faster", ">step"), rows)


def _critical_path(trace: TraceFacts) -> Iterator[Table]:
    kinds = sorted(trace.critical_path.items(), key=lambda item: -item[1])
    by_kind = [(CRITICAL_PATH_KINDS.get(kind, kind), units.percent(share)) for kind, share in kinds]
    yield Table("Critical path by kind of time", ("", ">share"), by_kind)
    by_operator = [(name, units.percent(share)) for name, share in trace.critical_operators.items()]
    yield Table("Critical path by operator", ("`", ">share"), by_operator)


def _times(trace: TraceFacts) -> Iterator[Table]:
    header = ("`name", ">share", ">a step", ">count a step", ">device idle", ">bytes a step", "")
    for title, times in (
        ("Kernels", trace.top_kernels),
        ("Operators", trace.operators),
        ("Waits for the device", trace.waits),
        ("Copies", trace.copies),
    ):
        rows = [
            (
                time.name,
                units.percent(time.share),
                units.seconds(time.mean_s),
                units.number(time.count),
                units.seconds(time.idle_s) if time.idle_s else "",
                units.bytes_(time.bytes) if time.bytes else "",
                time.detail,
            )
            for time in times
        ]
        yield Table(title, header, rows)


def _ranks(trace: TraceFacts) -> Table:
    rows = [
        (
            str(rank.rank),
            units.seconds(rank.step_s),
            *(units.percent(share) for share in (rank.busy, rank.communication, rank.waits, rank.late)),
        )
        for rank in trace.ranks
    ]
    return Table("Ranks", ("rank", ">step", ">busy", ">communication", ">waits", ">late"), rows)
