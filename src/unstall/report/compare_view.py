"""A comparison of two runs, for the terminal and as Markdown: differences first, then the conclusion."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.text import units
from unstall.text.sanitize import plain, shorten

if TYPE_CHECKING:
    from unstall.records.comparison import Comparison, Interval, Side

_PHASES = 6
_NOTABLE = 0.005  # of the largest phase


def page(found: Comparison, width: int = 100) -> Page:
    """The comparison for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), found)


def markdown(found: Comparison) -> str:
    """The comparison for a pull request."""
    return _fill(MarkdownPage(), found).as_text()


def _fill(page: Page, found: Comparison) -> Page:
    page.rule("unstall compare")
    page.paragraph(headline(found), f"bold {_colour(found)}")
    page.blank()
    for label, side in (("A", found.a), ("B", found.b)):
        page.phrases(label, _side(side))
    page.blank()
    page.bullets("Different", list(_differences(found)), 2)
    page.blank()
    page.table("Step", ("", "A", "B", "change"), [*_step_rows(found), *_phase_rows(found)])
    page.blank()
    page.bullets("Verdicts", _verdicts(found), 2)
    page.bullets("Mind", found.caveats, 3)
    return page


def headline(found: Comparison) -> str:
    """The answer in a sentence."""
    speedup = found.speedup
    if speedup is None:
        return "no comparison: at least one of the runs took no steps"
    if found.conclusion == "no difference":
        least = found.smallest_detectable
        could = f"; {units.factor(least)} would have been found" if least else ""
        return f"no difference can be shown: B is {interval(speedup)} as fast as A{could}"
    if found.conclusion == "unknown":
        return f"B did {interval(speedup)} as many steps/s as A; whether that is noise is not known"
    word = "faster" if found.conclusion == "faster" else "slower"
    return f"B is {word} than A: {interval(speedup)} its steps/s"


def interval(speedup: Interval) -> str:
    """As "1.42× (1.31 to 1.55)"."""
    text = units.factor(speedup.value)
    if speedup.low is None or speedup.high is None:
        return text
    return f"{text} ({units.number(speedup.low)} to {units.number(speedup.high)}, 95 %)"


def _colour(found: Comparison) -> str:
    return {"faster": "green", "slower": "red"}.get(found.conclusion, "yellow")


def _side(side: Side) -> list[str]:
    speed = units.rate(side.steps_per_s, "steps") if units.known(side.steps_per_s) else "no steps"
    phrases = [plain(side.id), speed]
    if units.known(side.samples_per_s):
        phrases.append(units.rate(side.samples_per_s, "samples"))
    return [*phrases, f"{side.steps} steps measured", shorten(plain(shlex.join(side.command)), 60)]


def _differences(found: Comparison) -> Iterator[str]:
    for one in found.differences:
        yield f"{one.name}: {plain(one.a)} → {plain(one.b)}"
    if found.commits:
        yield f"between the revisions: {plain(found.commits)}"
    if not found.differences:
        yield "nothing that is known: same machine, software, settings, command and revision"


def _step_rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, a, b in (("median", found.a.p50_s, found.b.p50_s), ("95 of 100", found.a.p95_s, found.b.p95_s)):
        if units.known(a) and units.known(b):
            rows.append((name, units.seconds(a), units.seconds(b), _change(a, b)))
    return rows


def _phase_rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    largest = max((max(one.a_s, one.b_s) for one in found.phases), default=0.0)
    shown = [one for one in found.phases if max(one.a_s, one.b_s) >= _NOTABLE * largest]
    for one in shown[:_PHASES]:
        change = _change(one.a_s, one.b_s) if one.sure is not False else "within the noise"
        rows.append((one.name, units.seconds(one.a_s), units.seconds(one.b_s), change))
    return rows


def _change(a: float, b: float) -> str:
    sign = "+" if b >= a else "−"
    return f"{sign}{units.seconds(abs(b - a))}"


def _verdicts(found: Comparison) -> list[str]:
    said = []
    for label, side in (("A", found.a), ("B", found.b)):
        line = f"{label}: {plain(side.verdict)}"
        if side.culprit:
            line += f", {_nearer(plain(side.culprit))}"
        if units.known(side.headroom) and side.headroom > 1:
            line += f", headroom {units.factor(side.headroom)}"
        said.append(line)
    if found.a.culprit and found.a.culprit == found.b.culprit:
        said.append("the culprit is the same")
    return said


def _nearer(place: str) -> str:
    """A place with the working directory taken off its path."""
    return place.replace(f" {os.getcwd()}{os.sep}", " ")
