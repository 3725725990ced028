"""A comparison of two runs, for the terminal and as Markdown: differences first, then the conclusion."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from unstall.report import promise
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.report.thresholds import COMPARED_PHASE
from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten

if TYPE_CHECKING:
    from unstall.records.comparison import Comparison, Side, SpeedupInterval

_PHASES = 6
_CALLBACKS = 5


def page(comparison: Comparison, width: int = 100) -> Page:
    """The comparison for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), comparison)


def markdown(comparison: Comparison) -> str:
    """The comparison for a pull request."""
    return _fill(MarkdownPage(), comparison).as_text()


def _fill(page: Page, comparison: Comparison) -> Page:
    page.rule("unstall compare")
    page.paragraph(headline(comparison), f"bold {_colour(comparison)}")
    page.blank()
    for label, side in (("A", comparison.a), ("B", comparison.b)):
        page.phrases(label, _side(side))
    page.blank()
    page.bullets("Different", list(_differences(comparison)), 2)
    page.blank()
    page.table("Step", ("", "A", "B", "change"), [*_step_rows(comparison), *_phase_rows(comparison)])
    callbacks = _callback_rows(comparison)
    if callbacks:
        page.table("Callbacks", ("", "A", "B", "change"), callbacks)
    page.blank()
    page.bullets("Verdicts", _verdicts(comparison), 2)
    page.bullets("Mind", comparison.caveats, 3)
    return page


def headline(comparison: Comparison) -> str:
    """The answer in a sentence."""
    speedup = comparison.speedup
    if speedup is None:
        return "no comparison: at least one of the runs took no steps"
    if comparison.conclusion == "no difference":
        least = comparison.smallest_detectable
        could = f"; {units.factor(least)} would have been detected" if least else ""
        return f"no difference can be shown: B is {interval(speedup)} as fast as A{could}"
    if comparison.conclusion == "unknown":
        return f"B did {interval(speedup)} as many steps/s as A, which may be noise"
    word = "faster" if comparison.conclusion == "faster" else "slower"
    return f"B is {word} than A: {interval(speedup)} its steps/s"


def interval(speedup: SpeedupInterval) -> str:
    """As "1.42× (1.31 to 1.55)"."""
    text = units.factor(speedup.value)
    if speedup.low is None or speedup.high is None:
        return text
    return f"{text} ({units.number(speedup.low)} to {units.number(speedup.high)}, 95 %)"


def _colour(comparison: Comparison) -> str:
    return {"faster": "green", "slower": "red"}.get(comparison.conclusion, "yellow")


def _side(side: Side) -> list[str]:
    speed = units.rate(side.steps_per_s, "steps") if units.known(side.steps_per_s) else "no steps"
    phrases = [sanitize_line(side.id), speed]
    if units.known(side.samples_per_s):
        phrases.append(units.rate(side.samples_per_s, "samples"))
    return [*phrases, f"{side.steps} steps measured", shorten(sanitize_line(shlex.join(side.command)), 60)]


def _differences(comparison: Comparison) -> Iterator[str]:
    for difference in comparison.differences:
        yield f"{difference.name}: {sanitize_line(difference.a)} → {sanitize_line(difference.b)}"
    if comparison.commits:
        yield f"between the revisions: {sanitize_line(comparison.commits)}"
    if not comparison.differences:
        yield "none known: same machine, software, settings, command and revision"


def _step_rows(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, a, b in (
        ("median", comparison.a.p50_s, comparison.b.p50_s),
        ("95 of 100", comparison.a.p95_s, comparison.b.p95_s),
    ):
        if units.known(a) and units.known(b):
            rows.append((name, units.seconds(a), units.seconds(b), _change(a, b)))
    return rows


def _phase_rows(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    largest = max((max(phase.a_s, phase.b_s) for phase in comparison.phases), default=0.0)
    shown = [phase for phase in comparison.phases if max(phase.a_s, phase.b_s) >= COMPARED_PHASE * largest]
    for phase in shown[:_PHASES]:
        change = _change(phase.a_s, phase.b_s) if phase.sure is not False else "within the noise"
        rows.append((phase.name, units.seconds(phase.a_s), units.seconds(phase.b_s), change))
    return rows


def _callback_rows(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """Seconds a step, of those that matter beside the phases."""
    largest = max((max(phase.a_s, phase.b_s) for phase in comparison.phases), default=0.0)
    shown = [change for change in comparison.callbacks if max(change.a_s, change.b_s) >= COMPARED_PHASE * largest]
    return [
        (
            sanitize_line(change.name),
            units.seconds(change.a_s),
            units.seconds(change.b_s),
            _change(change.a_s, change.b_s),
        )
        for change in shown[:_CALLBACKS]
    ]


def _change(a: float, b: float) -> str:
    sign = "+" if b >= a else "−"
    return f"{sign}{units.seconds(abs(b - a))}"


def _verdicts(comparison: Comparison) -> list[str]:
    lines = []
    for label, side in (("A", comparison.a), ("B", comparison.b)):
        line = f"{label}: {sanitize_line(side.verdict)}"
        if side.culprit:
            line += f", {_nearer(sanitize_line(side.culprit))}"
        if units.known(side.headroom) and side.headroom > 1:
            line += f", ceiling {promise.figure(side.ceiling) if side.ceiling else promise.factor(side.headroom)}"
        lines.append(line)
    if comparison.a.culprit and comparison.a.culprit == comparison.b.culprit:
        lines.append("the culprit is the same")
    return lines


def _nearer(place: str) -> str:
    """A place with the working directory taken off its path."""
    return place.replace(f" {os.getcwd()}{os.sep}", " ")
