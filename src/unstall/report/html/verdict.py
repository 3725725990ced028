"""The top of the page: the verdict, the culprit in its source, why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unstall.records.report import Culprit, Finding, Report
from unstall.report import facts, wording
from unstall.report.html import source
from unstall.report.html.markup import Markup, el, join
from unstall.text import units

if TYPE_CHECKING:
    from unstall.records.archive import Excerpt

_COMMAND_CELLS = 400
_MOST_ITEMS = 40


def hero(report: Report) -> Markup:
    """The verdict as a sentence, and the four figures that a reader asks for first."""
    return el(
        "section",
        el("p", wording.subject(report.verdict) if report.run.steps else "no verdict", class_="eyebrow"),
        el("h1", _sentence(report)),
        el("dl", [_figure(*one) for one in _figures(report)], class_="figures") if report.run.steps else None,
        class_=f"hero {mood(report)}",
        id="verdict",
        aria_label="Verdict",
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
    return el(
        "section",
        el("h2", "Culprit"),
        _place(blamed, share),
        source.excerpt(blamed, excerpts),
        el("p", "The time goes into ", el("code", blamed.via), class_="quiet") if blamed.via else None,
        id="culprit",
    )


def reasons(report: Report) -> Markup | None:
    """Evidence, advice, the runner-up and the next command."""
    verdict = report.verdict
    columns = [
        _list("Evidence", verdict.evidence),
        _list("What to do", verdict.advice),
    ]
    runner_up = wording.runner_up_line(report)
    body = join(
        el("div", columns, class_="columns") if any(columns) else None,
        el("p", el("strong", "Runner-up: "), runner_up) if runner_up else None,
        _next(report) if report.kind != "trace" else None,
    )
    return el("section", el("h2", "Why, and what next"), body, id="why") if body else None


def findings(report: Report) -> Markup | None:
    """Every pattern that matched beside the verdict, each behind a fold."""
    others = [finding for finding in report.findings if finding != report.verdict]
    if not others:
        return None
    return el("section", el("h2", "Also found"), [_finding(finding) for finding in others], id="findings")


def _finding(finding: Finding) -> Markup:
    gain = ""
    if units.known(finding.headroom) and finding.headroom >= wording.NOTICEABLE:
        gain = f" · up to {wording.gain_factor(finding.headroom)}, {finding.headroom_known_by}"
    return el(
        "details",
        el("summary", el("strong", wording.subject(finding)), el("span", f"{gain} · {finding.confidence} confidence")),
        _place(finding.culprit) if finding.culprit else None,
        el("div", _list("Evidence", finding.evidence), _list("What to do", finding.advice), class_="columns"),
    )


def _place(culprit: Culprit, share: str = "") -> Markup:
    """Function, file and line; a GPU trace may know an operator's name only."""
    name, *place = wording.name_and_place(culprit)
    at = (" at ", el("code", place[0])) if place else ()
    return el("p", el("code", name, class_="name"), *at, f" · {share}" if share else None, class_="place")


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


def _figure(label: str, value: str, more: str) -> Markup:
    return el("div", el("dt", label), el("dd", el("b", value), el("small", more) if more else None))


def _list(title: str, items: Sequence[str]) -> Markup | None:
    return el("div", el("h3", title), el("ul", [el("li", item) for item in items[:_MOST_ITEMS]])) if items else None


def _next(report: Report) -> Markup:
    why, command = wording.next_command(report)
    if command is None:
        return el("p", el("strong", "Next: "), why)
    return el(
        "div",
        el("p", el("strong", "Next: "), why),
        el("pre", el("code", command[:_COMMAND_CELLS]), class_="command", tabindex="0", aria_label="next command"),
    )
