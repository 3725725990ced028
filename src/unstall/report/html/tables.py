"""The figures as tables, which stay readable without scripts and to a screen reader; bars are CSS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unstall.records.report import Phase, Report
from unstall.report import facts, wording
from unstall.report.html import source
from unstall.report.html.markup import Markup, el
from unstall.text import units

MOST_ROWS = 30
"""Of a table or list; the rest is counted."""
_MOST_PATCH_LINES = 1000


def step(report: Report) -> Markup | None:
    """The mean step by phase: one stacked bar, and a table with the figures."""
    shown = facts.phases(report, fold=0.0).shown
    if not shown:
        return None
    total = sum(phase.share for phase in shown) or 1.0
    bar = [
        el("span", class_=f"{width(phase.share / total)} p-{phase.name}", title=_phase_title(phase)) for phase in shown
    ]
    rows = [
        (
            el("span", el("i", class_=f"swatch p-{phase.name}"), phase.name),
            units.percent(phase.share),
            units.seconds(phase.mean_s),
            units.seconds(phase.p95_s) if phase.p95_s else "",
            facts.phase_note(phase),
        )
        for phase in shown
    ]
    return el(
        "section",
        el("h2", "The step"),
        el("div", bar, class_="stack", aria_hidden="true"),
        table(("phase", ">share", ">a step", ">p95", ""), rows, caption="Mean step by phase, on the main thread"),
        id="step",
    )


def remedies(report: Report) -> Markup | None:
    """What was tried, what is kept, and the patch."""
    if not report.remedies and not report.patch:
        return None
    rows = [
        (
            one.name,
            el("span", "kept" if one.kept else "not kept", class_="yes" if one.kept else "no"),
            one.exactness,
            with_interval(units.factor(one.speedup), one.ci95) if units.known(one.speedup) else "",
            units.factor(one.predicted_speedup) if units.known(one.predicted_speedup) else "",
            {True: "yes", False: "no", None: ""}[one.equivalent],
            one.why_not or "",
        )
        for one in report.remedies
    ]
    header = ("remedy", "", "exactness", ">speed-up", ">predicted", "same results", "why not")
    return el(
        "section",
        el("h2", "Remedies"),
        table(header, rows, caption="Changes that were tried") if rows else None,
        _patch(report.patch) if report.patch else None,
        id="remedies",
    )


def details(report: Report) -> Markup | None:
    """Hot lines, modules and the user's own spans."""
    parts = [
        fold(
            "Hot lines",
            ("line", "at", ">share", "of", "phase", "in the call of"),
            [
                (
                    el("code", h.function),
                    el("code", wording.location(h.file, h.line)),
                    units.percent(h.share),
                    h.where,
                    h.phase,
                    h.via,
                )
                for h in report.hotspots
            ],
        ),
        fold(
            "Modules",
            ("module", "type", ">calls a step", ">own", ">with children"),
            [
                (
                    el("code", m.name or "(root)"),
                    m.type,
                    units.number(m.calls_per_step),
                    units.seconds(m.self_s),
                    units.seconds(m.forward_s),
                )
                for m in sorted(report.modules, key=lambda module: -module.self_s)
            ],
        ),
        fold(
            "Spans",
            ("span", ">count", ">mean", ">total"),
            [
                (s.name, f"{s.count:,}", units.seconds(s.mean_s), units.seconds(s.total_s))
                for s in sorted(report.spans, key=lambda span: -span.total_s)
            ],
        ),
    ]
    return el("section", el("h2", "In detail"), parts, id="details") if any(parts) else None


def run(report: Report) -> Markup:
    """What was run, on what, and what could not be measured."""
    lists = (
        ("Speed", facts.throughput(report)),
        ("Machine", facts.utilization(report)),
        ("Run", facts.run(report)[: -1 if report.kind == "trace" else None]),
        ("Outside the steps", facts.startup(report)),
    )
    rows = [el("div", el("dt", label), el("dd", " · ".join(phrases))) for label, phrases in lists if phrases]
    environment = [el("div", el("dt", name), el("dd", value)) for name, value in _environment(report)]
    return el(
        "section",
        el("h2", "Run and environment"),
        el("dl", rows, class_="facts"),
        el("ul", [el("li", note) for note in report.run.notes[:MOST_ROWS]], class_="notes")
        if report.run.notes
        else None,
        el("details", el("summary", el("strong", "Environment")), el("dl", environment, class_="facts"))
        if environment
        else None,
        id="run",
    )


def table(
    header: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str, bars: bool = False, most: int = MOST_ROWS
) -> Markup:
    """A table whose first column names the row; columns without any content are left out.

    A column whose header begins with ``>`` holds figures and stands to the right.
    """
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    sides = ["n" if name.startswith(">") else None for name in header]
    body = [
        el("tr", [el("th", row[i], scope="row") if i == 0 else el("td", row[i], class_=sides[i]) for i in kept])
        for row in rows[:most]
    ]
    more = len(rows) - most
    return el(
        "div",
        el(
            "table",
            el("caption", caption),
            el("thead", el("tr", [el("th", header[i].lstrip(">"), scope="col", class_=sides[i]) for i in kept])),
            el("tbody", body),
            class_="bars" if bars else None,
        ),
        el("p", f"and {more} more", class_="quiet") if more > 0 else None,
        class_="scroll",
        role="region",
        aria_label=caption,
        tabindex="0",
    )


def fold(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup | None:
    """A table behind its title; None without rows."""
    if not rows:
        return None
    return el("details", el("summary", el("strong", title), f" · {len(rows)}"), table(header, rows, caption=title))


def _patch(patch: str) -> Markup:
    lines = source.highlighted(patch.rstrip("\n"), "diff")
    shown = [Markup(f"{line}\n") for line in lines[:_MOST_PATCH_LINES]]
    more = len(lines) - _MOST_PATCH_LINES
    return el(
        "div",
        el("h3", "Patch"),
        el("pre", el("code", shown), class_="code", tabindex="0", aria_label="patch"),
        el("p", f"and {more} more lines", class_="quiet") if more > 0 else None,
    )


def _environment(report: Report) -> Iterator[tuple[str, str]]:
    yield "command", " ".join(report.run.command)
    yield "started", report.run.started
    for name, value in report.run.environment.items():
        if value not in (None, "", [], {}):
            yield name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _phase_title(phase: Phase) -> str:
    return f"{phase.name} {units.percent(phase.share)}, {units.seconds(phase.mean_s)}"


def with_interval(figure: str, interval: tuple[float, float] | None) -> Markup:
    """A figure, and its interval in small print behind it."""
    if interval is None:
        return el("span", figure)
    low, high = map(units.number, interval)
    return el("span", figure, el("small", f" [{low}, {high}]"))


def width(share: float) -> str:
    """The class of a width in tenths of a per cent; the page makes a rule of each it finds."""
    return f"w-{_permille(share)}"


def left(share: float) -> str:
    """The same for the distance from the left."""
    return f"x-{_permille(share)}"


def _permille(share: float) -> int:
    return round(1000 * min(max(share, 0.0), 1.0))
