"""The top of the page: the verdict, the culprit in its source, why, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unstall.records.report import Report
from unstall.records.vocabulary import HEALTHY, UNEXPLAINED
from unstall.report import run_phrases, wording
from unstall.report.html import source
from unstall.report.html.markup import render
from unstall.report.templating import Markup

if TYPE_CHECKING:
    from unstall.records.archive import Excerpt


def hero(report: Report) -> Markup:
    """The verdict as a sentence, and the four figures that a reader asks for first."""
    phrases = run_phrases.run(report)
    steps, *further = phrases[:-1] if report.kind == "trace" else phrases  # how it ended, a trace does not tell
    return render(
        "verdict.html", report=report, mood=mood(report), sentence=_sentence(report), steps=steps, more=further
    )


def _sentence(report: Report) -> str:
    """The headline without its first word, the pattern, which stands above it."""
    headline = _headline(report)
    sentence = headline.removeprefix(f"{wording.subject(report.verdict)}: ").removeprefix("no verdict: ")
    return sentence[:1].upper() + sentence[1:]


def _headline(report: Report) -> str:
    if report.kind == "trace":
        from unstall.report import trace_view

        return trace_view.headline(report)
    return wording.headline(report)


def mood(report: Report) -> str:
    """``good``, ``bad`` or ``unsure``, as the colour of the terminal's verdict."""
    if report.run.steps == 0 or report.verdict.confidence == "low" or report.verdict.pattern == UNEXPLAINED:
        return "unsure"
    return "good" if report.verdict.pattern == HEALTHY else "bad"


def culprit(report: Report, excerpts: Sequence[Excerpt] = ()) -> Markup | None:
    """Who is blamed, where, and the lines around it."""
    blamed = report.verdict.culprit
    if blamed is None:
        return None
    share = wording.culprit_share(report.verdict) if report.kind != "trace" else ""
    return render("culprit.html", culprit=blamed, share=share, excerpt=source.excerpt(blamed, excerpts))


def reasons(report: Report) -> Markup | None:
    """Evidence, advice, the runner-up and the next command."""
    verdict = report.verdict
    runner_up = wording.runner_up_line(report)
    following = wording.next_command(report) if report.kind != "trace" else None
    if not (verdict.evidence or verdict.advice or runner_up or following):
        return None
    return render("why.html", verdict=verdict, runner_up=runner_up, next=following)


def findings(report: Report) -> Markup | None:
    """Every pattern that matched beside the verdict, each behind a fold."""
    runners_up = [finding for finding in report.findings if finding != report.verdict]
    return render("findings.html", findings=runners_up) if runners_up else None
