"""A run in progress as a few lines of a terminal."""

from __future__ import annotations

from unstall.records.observations import LiveView, Usage
from unstall.records.vocabulary import PhaseName
from unstall.report.layout import Page, sparkline
from unstall.report.markdown import escape
from unstall.report.thresholds import SHOWN_AS_ZERO
from unstall.text import units

_BAR_CELLS, _FIGURE_CELLS = 30, 18
_WIDEST = 100


def page(view: LiveView, width: int = 100) -> Page:
    """All that is known of the run, for a terminal of ``width`` cells."""
    page = Page.fitting(width, widest=_WIDEST)
    page.rule(f"unstall watch · {view.id}")
    if view.command:
        page.field("Program", view.command, most=1)
    page.phrases("Running", [units.seconds(round(view.running_s)), view.sampling])
    page.phrases("Steps", _steps(view))
    sparks = sparkline(view.rates)
    if sparks:
        page.field("", sparks, "cyan", most=1)
    _phases(page, view)
    page.phrases("Machine", [*map(_usage, view.usage.items()), *_gpus(view)])
    return page


def markdown(view: LiveView) -> str:
    """The same as one item of a list."""
    return f"- {escape(view.id)}: {escape(line(view))}\n"


def line(view: LiveView) -> str:
    """The same in one line, for an output that is not a terminal."""
    parts = [*_steps(view), view.sampling]
    parts += [f"{name} {units.percent(seconds / _step_s(view))}" for name, seconds in _ordered(view)[:3]]
    return " · ".join(parts)


def _steps(view: LiveView) -> list[str]:
    if not view.steps:
        return ["no step yet"]
    phrases = [f"{view.steps:,} {'step' if view.steps == 1 else 'steps'}"]
    return [*phrases, units.rate(view.rate, "steps")] if view.rate is not None else phrases


def _phases(page: Page, view: LiveView) -> None:
    if not view.phases:
        return
    page.phrases("Phases", [f"{units.seconds(_step_s(view))} a step over {view.phase_steps:,} steps"])
    cells = min(_BAR_CELLS, page.room - _FIGURE_CELLS)
    for name, seconds in _ordered(view):
        share = seconds / _step_s(view)
        if share >= SHOWN_AS_ZERO:
            page.bar(name, share, f"{units.percent(share):>7} {units.seconds(seconds):>8}", cells, "blue")


def _ordered(view: LiveView) -> list[tuple[PhaseName, float]]:
    return sorted(view.phases.items(), key=lambda phase: -phase[1])


def _step_s(view: LiveView) -> float:
    return sum(view.phases.values()) or 1.0


def _usage(kind: tuple[str, Usage]) -> str:
    name, usage = kind
    count = f"{usage.processes} " if usage.processes > 1 else ""
    return f"{count}{name} {units.number(round(usage.cores, 2))} cores, {units.bytes_(usage.rss_bytes)}"


def _gpus(view: LiveView) -> list[str]:
    return [f"GPU {index} {units.percent(share)}" for index, share in enumerate(view.gpus)]
