"""The top of the page: the verdict, the culprit in its source, why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unstall.records.report import Report
from unstall.report import facts, wording
from unstall.report.html import source
from unstall.report.html.markup import render
from unstall.report.templating import Markup
from unstall.text import units

if TYPE_CHECKING:
    from unstall.records.archive import Excerpt


def hero(report: Report) -> Markup:
    """The verdict as a sentence, and the four figures that a reader asks for first."""
    measured = bool(report.run.steps)
    return render(
        "verdict.html",
        mood=mood(report),
        subject=wording.subject(report.verdict) if measured else "no verdict",
        sentence=_sentence(report),
        figures=list(_figures(report)) if measured else [],
    )


def _sentence(report: Report) -> str:
    """The headline without its first word, the pattern, which stands above it."""
    headline = _headline(report)
    rest = headline.removeprefix(f"{wording.subject(report.verdict)}: ").removeprefix("no verdict: ")
    return rest[:1].upper() + rest[1:]


def _headline(report: Report) -> str:
    if report.kind == "trace":
        from unstall.report import trace_view

        return trace_view.headline(report)
    return wording.headline(report)


def mood(report: Report) -> str:
    """``good``, ``bad`` or ``unsure``, as the colour of the terminal's verdict."""
    if report.run.steps == 0 or report.verdict.confidence == "low":
        return "unsure"
    return "good" if report.verdict.pattern == "healthy" else "bad"


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
    others = [finding for finding in report.findings if finding != report.verdict]
    return render("findings.html", findings=others) if others else None


def _figures(report: Report) -> Iterator[tuple[str, str, str]]:
    """Label, figure, and what else there is to say about it."""
    speed, step, verdict = report.throughput, report.throughput.step_s, report.verdict
    if units.known(speed.steps_per_s):
        yield "Speed", units.rate(speed.steps_per_s, "steps"), _samples(report)
    if step is not None and units.known(step.mean):
        yield "Step", units.seconds(step.mean), f"p50 {units.seconds(step.p50)} · p95 {units.seconds(step.p95)}"
    if units.known(verdict.headroom):
        known = f"{verdict.headroom_known_by}, {verdict.confidence} confidence"
        worth = verdict.headroom >= wording.NOTICEABLE
        yield "Headroom", wording.gain_factor(verdict.headroom) if worth else "none", known
    if units.known(report.total_speedup):
        yield "Speed-up", units.factor(report.total_speedup), "with the remedies that were kept"
    told = facts.run(report)
    told = told[:-1] if report.kind == "trace" else told  # how it ended, a trace does not tell
    yield "Measured", told[0].removesuffix(" measured"), " · ".join(told[1:])


def _samples(report: Report) -> str:
    speed = report.throughput
    for rate, noun in ((speed.samples_per_s, "samples"), (speed.env_steps_per_s, "env steps")):
        if units.known(rate):
            return units.rate(rate, noun)
    return ""
