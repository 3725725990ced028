"""What the device did, of a report on a GPU: its time by use, step by step, and what a replay predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unstall.report.device_words import PATH
from unstall.report.html import tables
from unstall.report.html.markup import Markup, el
from unstall.text import units

if TYPE_CHECKING:
    from unstall.records.report import Report
    from unstall.records.trace import TraceFacts, TraceTime

USES = {
    "compute": ("computing", "u-compute"),
    "communication": ("collectives, nothing computed meanwhile", "u-communication"),
    "copies": ("copies, nothing computed meanwhile", "u-copies"),
    "idle_loader": ("idle: the next batch is late", "u-loader"),
    "idle_sync": ("idle: the host waits for the device", "u-sync"),
    "idle_queued": ("idle: work waits for another stream or device", "u-queued"),
    "idle_submitting": ("idle: the host submits too slowly", "u-submitting"),
    "idle_host": ("idle: the host does something else", "u-host"),
    "idle_cold": ("idle: a kernel is loaded for the first time", "u-cold"),
}
"""The disjoint uses of the device's time, in words, and the class of the colour."""

_LEAST = 0.0005


def section(report: Report, chart: Markup | None) -> Markup | None:
    """The device's time by use, its steps, replayed changes, and where its time goes by name."""
    trace = report.trace
    if trace is None:
        return None
    return el(
        "section",
        el("h2", "The device"),
        el("p", _about(trace), class_="quiet"),
        _uses(trace),
        chart,
        _parts(trace),
        _what_ifs(trace),
        _critical(trace),
        [_times(title, rows) for title, rows in _named(trace) if rows],
        _ranks(trace),
        id="device",
        class_="device",
    )


def steps(report: Report) -> dict[str, Any] | None:
    """For the chart: seconds of each use in each step, as a panel like those of the machine."""
    if report.trace is None or len(report.trace.steps) < 2:
        return None
    import numpy as np

    from unstall.report.html import series

    recorded = report.trace.steps
    used = [name for name in USES if any(step.shares.get(name, 0.0) > _LEAST for step in recorded)]
    if not used:
        return None
    closed = [*recorded, recorded[-1]]  # the last step is as wide as the others
    rows = [
        {
            "name": USES[name][0],
            "colour": USES[name][1],
            "values": series.packed(np.array([step.shares.get(name, 0.0) * step.step_s for step in closed])),
        }
        for name in used
    ]
    return {
        "t": series.packed(np.arange(len(closed))),
        "bucket_s": 0,
        "panels": [{"title": "Step by step", "unit": "seconds", "x": "step", "stacked": True, "series": rows}],
    }


def _about(trace: TraceFacts) -> str:
    devices = ", ".join(dict.fromkeys(trace.devices))
    shares = [("kernels under 20 µs", trace.kernels.get("small_share")), ("replay error", abs(trace.replay_error))]
    told = [f"{name} {units.percent(share)}" for name, share in shares if units.known(share)]
    count = trace.kernels.get("per_step")
    return " · ".join([*([devices] if devices else []), *([f"{count:,.0f} kernels a step"] if count else []), *told])


def _uses(trace: TraceFacts) -> Markup:
    shown = [(name, trace.device.get(name, 0.0)) for name in USES if trace.device.get(name, 0.0) > _LEAST]
    bar = [el("span", class_=f"{tables.width(share)} {USES[name][1]}", title=USES[name][0]) for name, share in shown]
    rows = [(el("span", el("i", class_=f"swatch {USES[n][1]}"), USES[n][0]), units.percent(s)) for n, s in shown]
    return el(
        "div",
        el("div", bar, class_="stack", aria_hidden="true"),
        tables.table(("use", ">share"), rows, caption="The device’s time over all steps, by use"),
    )


def _parts(trace: TraceFacts) -> Markup | None:
    rows = [
        (
            el("code", one.name),
            *(units.percent(share) for share in (one.share, one.busy, one.exposed)),
            units.seconds(one.mean_s),
            one.pattern or "mixed",
        )
        for one in trace.regions
    ]
    if not rows:
        return None
    header = ("part", ">share", ">busy", ">exposed", ">a step", "pattern")
    return tables.table(header, rows, caption="The program’s parts: their time on the device, and what it is spent on")


def _what_ifs(trace: TraceFacts) -> Markup | None:
    if not trace.what_ifs:
        return None
    rows = [
        (el("code", one.what_if), units.factor(one.gain), units.seconds(one.step_s))
        for one in sorted(trace.what_ifs, key=lambda one: -one.gain)
    ]
    return tables.table(("change", ">faster", ">step"), rows, caption="What a replay of the trace predicts")


def _critical(trace: TraceFacts) -> list[Markup | None]:
    kinds = sorted(trace.critical_path.items(), key=lambda item: -item[1])
    tabled = (
        ("Critical path by kind of time", [(PATH.get(kind, kind), units.percent(share)) for kind, share in kinds]),
        (
            "Critical path by operator",
            [(el("code", name), units.percent(share)) for name, share in trace.critical_operators.items()],
        ),
    )
    return [tables.fold(title, ("", ">share"), rows) for title, rows in tabled if rows]


def _named(trace: TraceFacts) -> Sequence[tuple[str, Sequence[TraceTime]]]:
    return (
        ("Kernels", trace.top_kernels),
        ("Operators", trace.operators),
        ("Waits for the device", trace.waits),
        ("Copies", trace.copies),
    )


def _times(title: str, times: Sequence[TraceTime]) -> Markup | None:
    rows = [
        (
            el("code", one.name),
            units.percent(one.share),
            units.seconds(one.mean_s),
            units.number(one.count),
            units.seconds(one.idle_s) if one.idle_s else "",
            units.bytes_(one.bytes) if one.bytes else "",
            one.detail,
        )
        for one in times
    ]
    return tables.fold(title, ("name", ">share", ">a step", ">count a step", ">device idle", ">bytes a step", ""), rows)


def _ranks(trace: TraceFacts) -> Markup | None:
    rows = [
        (
            str(one.rank),
            units.seconds(one.step_s),
            units.percent(one.busy),
            units.percent(one.communication),
            units.percent(one.waits),
            units.percent(one.late),
        )
        for one in trace.ranks
    ]
    return tables.fold("Ranks", ("rank", ">step", ">busy", ">communication", ">waits", ">late"), rows)
