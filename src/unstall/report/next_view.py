"""The stopping rule's answer on a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unstall.report.layout import Page, sparkline
from unstall.report.markdown import MarkdownPage
from unstall.text import units

if TYPE_CHECKING:
    from unstall.records.comparison import BestRemedy, Stopping
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
    """Price of an hour of the machine, in whatever currency."""


def page(answer: NextAnswer, width: int = 100) -> Page:
    """The answer for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), answer)


def markdown(answer: NextAnswer) -> str:
    """The answer for a pull request."""
    return _fill(MarkdownPage(), answer).as_text()


def _fill(page: Page, answer: NextAnswer) -> Page:
    stopping = answer.stopping
    sentence, colour = _ANSWERS[stopping.answer]
    page.rule("unstall next")
    page.paragraph(sentence, f"bold {colour}")
    page.blank()
    page.field("Program", stopping.program)
    page.bullets("Why", stopping.why, 3)
    page.phrases("Speed", _speed(stopping))
    page.blank()
    page.table("Changes", ("code", "runs", "steps/s", "gain"), _iterations(stopping))
    if len(stopping.iterations) > 1:
        page.field("", sparkline([iteration.steps_per_s for iteration in stopping.iterations]), "cyan", most=1)
    page.phrases("Expected", _expected(stopping))
    page.blank()
    if stopping.best is not None:
        page.field("Best next", f"{stopping.best.what} ({_gain(stopping.best)})")
    page.phrases("Saves", _savings(stopping, answer.price))
    if answer.command is not None and stopping.answer != "stop":
        page.command("Do", *answer.command)
    return page


def _gain(best: BestRemedy) -> str:
    word = "ceiling " if best.is_ceiling else "expected gain " if best.known_by == "estimated" else ""
    between = f", {best.interval[0]:.2g} to {best.interval[1]:.2g}" if best.interval else ""
    return f"{word}{units.factor(round(best.gain, 2))}{between}, {best.known_by}"


def _speed(stopping: Stopping) -> list[str]:
    if not units.known(stopping.steps_per_s):
        return []
    phrases = [units.rate(stopping.steps_per_s, "steps")]
    if stopping.bound is not None:
        phrases.append(f"ceiling {units.rate(stopping.steps_per_s * stopping.bound, 'steps')} if nothing held it up")
    return phrases


def _iterations(stopping: Stopping) -> list[tuple[str, str, str, str]]:
    return [
        (
            iteration.code,
            str(iteration.runs),
            units.number(iteration.steps_per_s),
            units.factor(iteration.gain) if iteration.gain else "",
        )
        for iteration in stopping.iterations[-_ITERATIONS:]
    ]


def _expected(stopping: Stopping) -> list[str]:
    if stopping.expected_gain is None:
        return []
    return [f"{units.factor(stopping.expected_gain)} from one more change, if gains continue as before"]


def _savings(stopping: Stopping, price: float | None) -> list[str]:
    savings = stopping.savings
    if savings is None:
        unknown = price is not None and stopping.answer != "unknown"
        return ["not known: give the hours it runs a week with --hours"] if unknown else []
    hours = units.seconds(3600 * savings.hours_run)
    if savings.hours_saved <= 0:
        return ["nothing: no remedy is known"]
    at_most = "up to " if stopping.best and stopping.best.is_ceiling else ""
    phrases = [f"{at_most}{units.seconds(3600 * savings.hours_saved)} of {hours} a week"]
    if savings.hours_known_by == "history":
        phrases.append("hours from the history; --hours sets them")
    if savings.money_saved is not None and price is not None:
        phrases.append(f"worth {at_most}{units.number(savings.money_saved)} a week, at {units.number(price)} an hour")
    return phrases
