"""The figures as tables, which stay readable without scripts and to a screen reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from unstall.records.report import Report
from unstall.report import run_phrases, wording
from unstall.report.html import source
from unstall.report.html.markup import render
from unstall.report.templating import Markup
from unstall.text import units

_MOST_RANKS = 64


class TableColumn(NamedTuple):
    """A column of a table."""

    position: int
    """The position of its cells in each row."""
    name: str
    figures: bool
    """Whether it holds figures, which stand to the right."""
    code: bool
    """Whether it holds names from the program."""


class Table(NamedTuple):
    """Rows of cells; the first column names the row."""

    caption: str
    header: Sequence[str]
    """Names of the columns, with a ``>`` before those of figures and a backquote before those of code."""
    rows: Sequence[Sequence[Any]]

    @property
    def columns(self) -> list[TableColumn]:
        """Those with any content."""
        return [
            TableColumn(i, name.lstrip(">`"), name.startswith(">"), name.startswith("`"))
            for i, name in enumerate(self.header)
            if any(row[i] for row in self.rows)
        ]


def step(report: Report) -> Markup | None:
    """The mean step by phase: one stacked bar, and a table with the figures."""
    phases = run_phrases.phases(report, fold=0.0).shown
    if not phases:
        return None
    rows = [
        (
            phase.name,
            units.percent(phase.share),
            units.seconds(phase.mean_s),
            units.seconds(phase.p95_s) if phase.p95_s else "",
            run_phrases.phase_note(phase),
        )
        for phase in phases
    ]
    figures = Table("Mean step by phase, on the main thread", ("phase", ">share", ">a step", ">p95", ""), rows)
    return render("step.html", phases=phases, total=sum(phase.share for phase in phases) or 1.0, figures=figures)


def remedies(report: Report) -> Markup | None:
    """What was tried, what is kept, and the patch."""
    if not report.remedies and not report.patch:
        return None
    rows = [
        (
            remedy.name,
            "kept" if remedy.kept else "not kept",
            remedy.sameness or "",
            (units.factor(remedy.speedup), remedy.ci95) if units.known(remedy.speedup) else "",
            units.factor(remedy.predicted_speedup) if units.known(remedy.predicted_speedup) else "",
            remedy.why_not or "",
        )
        for remedy in report.remedies
    ]
    header = ("remedy", "", "results", ">speed-up", ">predicted", "why not")
    patch = source.highlighted(report.patch.rstrip("\n"), "diff") if report.patch else []
    return render("remedies.html", tried=Table("Changes that were tried", header, rows), patch=patch)


def details(report: Report) -> Markup | None:
    """Hot lines, ranks, modules, callbacks, compiled functions and the user's own spans."""
    hot_lines = [
        (
            line.function,
            wording.place_of(line),
            units.percent(line.share),
            line.where,
            line.phase,
            line.via,
            wording.called_by(line),
        )
        for line in report.hotspots
    ]
    modules = [
        (
            module.name or "(root)",
            module.type,
            units.number(module.calls_per_step),
            units.seconds(module.self_s),
            units.seconds(module.forward_s),
        )
        for module in sorted(report.modules, key=lambda module: -module.self_s)
    ]
    spans = [
        (span.name, f"{span.count:,}", units.seconds(span.mean_s), units.seconds(span.total_s))
        for span in sorted(report.spans, key=lambda span: -span.total_s)
    ]
    ranks = run_phrases.ranks(report, _MOST_RANKS)
    tables = (
        Table("Hot lines", ("`line", "`at", ">share", "of", "phase", "in the call of", ""), hot_lines),
        Table(
            "Ranks",
            ("rank", *(f">{name}" for name in run_phrases.RANK_COLUMNS)),
            ranks,
        ),
        Table(
            "Nodes",
            ("node", *(f">{name}" for name in run_phrases.NODE_COLUMNS)),
            run_phrases.nodes(report, _MOST_RANKS),
        ),
        Table("Modules", ("`module", "type", ">calls a step", ">own", ">with children"), modules),
        Table(
            "Callbacks", ("`event", ">calls", ">mean", ">total", ">of the run", "`at"), run_phrases.callbacks(report)
        ),
        Table("Compiled", ("`function", ">graphs", ">compiled", "`at", "why"), run_phrases.compiled(report)),
        Table("Spans", ("span", ">count", ">mean", ">total"), spans),
    )
    return render("details.html", tables=tables) if any(table.rows for table in tables) else None


def run(report: Report) -> Markup:
    """What was run, on what, and what could not be measured."""
    phrases = (
        ("Speed", run_phrases.throughput(report)),
        ("Request", run_phrases.generation(report)),
        ("Machine", run_phrases.utilization(report)),
        ("Run", run_phrases.run(report)[: -1 if report.kind == "trace" else None]),
        ("Outside the steps", run_phrases.startup(report)),
    )
    return render(
        "run.html",
        facts=[(label, " · ".join(parts)) for label, parts in phrases if parts],
        notes=report.run.notes,
        environment=list(_environment(report)),
    )


def _environment(report: Report) -> Iterator[tuple[str, str]]:
    yield "command", " ".join(report.run.command)
    yield "started", report.run.started
    for name, value in report.run.environment.items():
        if value not in (None, "", [], {}):
            yield name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value)
