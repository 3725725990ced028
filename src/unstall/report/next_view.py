"""The stopping rule's answer on a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unstall.report.layout import Page, sparkline
from unstall.report.markdown import MarkdownPage
from unstall.text import units

if TYPE_CHECKING:
    from unstall.records.comparison import Stopping
    from unstall.report.wording import NextCommand

_ITERATIONS = 8
_ANSWERS = {
    "stop": ("good enough: stop here", "green"),
    "go on": ("not yet good enough: go on", "yellow"),
    "unknown": ("nothing can be said yet", "yellow"),
}


@dataclass(frozen=True)
class NextAnswer:
    """Whether to stop, and what to show beside it."""

    stopping: Stopping
    command: NextCommand | None = None
    """What to type to go on."""
    price: float | None = None
    """Of an hour of the machine, in whatever currency."""


def page(answer: NextAnswer, width: int = 100) -> Page:
    """The answer for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), answer)


def markdown(answer: NextAnswer) -> str:
    """The answer for a pull request."""
    return _fill(MarkdownPage(), answer).as_text()


def _fill(page: Page, answer: NextAnswer) -> Page:
    found = answer.stopping
    sentence, colour = _ANSWERS[found.answer]
    page.rule("unstall next")
    page.paragraph(sentence, f"bold {colour}")
    page.blank()
    page.field("Program", found.program)
    page.bullets("Why", found.why, 3)
    page.phrases("Speed", _speed(found))
    page.blank()
    page.table("Changes", ("code", "runs", "steps/s", "gain"), _iterations(found))
    if len(found.iterations) > 1:
        page.field("", sparkline([one.steps_per_s for one in found.iterations]), "cyan", most=1)
    page.phrases("Expected", _expected(found))
    page.blank()
    if found.best is not None:
        at_most = "up to " if found.best.at_most else ""
        gain = f"{at_most}{units.factor(found.best.gain)}, {found.best.known_by}"
        page.field("Best next", f"{found.best.what} ({gain})")
    page.phrases("Saves", _savings(found, answer.price))
    if answer.command is not None and found.answer != "stop":
        page.command("Do", *answer.command)
    return page


def _speed(found: Stopping) -> list[str]:
    if not units.known(found.steps_per_s):
        return []
    phrases = [units.rate(found.steps_per_s, "steps")]
    if found.bound is not None:
        phrases.append(f"at most {units.rate(found.steps_per_s * found.bound, 'steps')} if nothing held it up")
    return phrases


def _iterations(found: Stopping) -> list[tuple[str, str, str, str]]:
    return [
        (one.code, str(one.runs), units.number(one.steps_per_s), units.factor(one.gain) if one.gain else "")
        for one in found.iterations[-_ITERATIONS:]
    ]


def _expected(found: Stopping) -> list[str]:
    if found.expected_gain is None:
        return []
    return [f"{units.factor(found.expected_gain)} of one more change, if gains go on as they did"]


def _savings(found: Stopping, price: float | None) -> list[str]:
    savings = found.savings
    if savings is None:
        unknown = price is not None and found.answer != "unknown"
        return ["not known: say by --hours how many hours a week it runs"] if unknown else []
    hours = units.seconds(3600 * savings.hours_run)
    if savings.hours_saved <= 0:
        return ["nothing: no remedy is known"]
    at_most = "up to " if found.best and found.best.at_most else ""
    phrases = [f"{at_most}{units.seconds(3600 * savings.hours_saved)} of {hours} a week"]
    if savings.hours_known_by == "history":
        phrases.append("hours by the history, or by --hours")
    if savings.money_saved is not None and price is not None:
        phrases.append(f"worth {at_most}{units.number(savings.money_saved)} a week, at {units.number(price)} an hour")
    return phrases
