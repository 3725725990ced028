"""A run in progress as a few lines of a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from unstall.records.observations import Usage, View
from unstall.records.vocabulary import PhaseName
from unstall.report.layout import LABEL_CELLS, Page, sparkline
from unstall.text import units

_BAR_CELLS = 30
_WIDEST = 100


def frame(view: View, width: int) -> Group:
    """All that is known of the run, fitted to ``width`` cells."""
    page = Page.fitting(width, widest=_WIDEST)
    page.rule(f"unstall watch · {view.id}")
    if view.command:
        page.field("Program", view.command, most=1)
    page.phrases("Running", [units.seconds(round(view.running_s)), view.sampling])
    page.phrases("Steps", _steps(view))
    sparks = sparkline(view.rates)
    if sparks:
        page.lines.append(Text.assemble((" " * LABEL_CELLS, ""), (sparks, "cyan")))
    _phases(page, view)
    page.phrases("Machine", [*map(_usage, view.usage.items()), *_gpus(view)])
    return Group(*page.lines)


def line(view: View) -> str:
    """The same in one line, for an output that is not a terminal."""
    parts = [*_steps(view), view.sampling]
    parts += [f"{name} {units.percent(seconds / _step_s(view))}" for name, seconds in _ordered(view)[:3]]
    return " · ".join(parts)


def _steps(view: View) -> list[str]:
    if not view.steps:
        return ["no step yet"]
    told = [f"{view.steps:,} {'step' if view.steps == 1 else 'steps'}"]
    return [*told, units.rate(view.rate, "steps")] if view.rate is not None else told


def _phases(page: Page, view: View) -> None:
    if not view.phases:
        return
    page.phrases("Phases", [f"{units.seconds(_step_s(view))} a step over {view.phase_steps:,} steps"])
    for name, seconds in _ordered(view):
        share = seconds / _step_s(view)
        if share >= 0.005:
            page.bar(name, share, f"{units.percent(share):>7} {units.seconds(seconds):>8}", _BAR_CELLS, "blue")


def _ordered(view: View) -> list[tuple[PhaseName, float]]:
    return sorted(view.phases.items(), key=lambda phase: -phase[1])


def _step_s(view: View) -> float:
    return sum(view.phases.values()) or 1.0


def _usage(kind: tuple[str, Usage]) -> str:
    name, usage = kind
    count = f"{usage.processes} " if usage.processes > 1 else ""
    return f"{count}{name} {units.number(round(usage.cores, 2))} cores, {units.bytes_(usage.rss_bytes)}"


def _gpus(view: View) -> list[str]:
    return [f"GPU {index} {units.percent(share)}" for index, share in enumerate(view.gpus)]
