"""What `unstall optimize` found, on one screen: the total, what was kept, what was not and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unstall.records.remedies import SAMENESS_MEANS, RemedyStatus, TriedRemedy
from unstall.records.report import Report
from unstall.report import run_markdown
from unstall.report.layout import Page
from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten

_NARROWEST = 60
_UNTRIED = (RemedyStatus.UNTRIED, RemedyStatus.BELOW_WORTH)
_WIDEST = 1000  # a remedy is one line, however long


@dataclass(frozen=True)
class OptimizeResult:
    """What the search found, and what to say of it beyond the report."""

    report: Report
    remarks: Sequence[str] = ()
    """Lines for the end of the screen."""


def page(answer: OptimizeResult, width: int = 100) -> Page:
    """The total and every remedy, for a terminal of ``width`` cells."""
    report = answer.report
    page = Page.fitting(width, narrowest=_NARROWEST, widest=_WIDEST)
    page.line(f"unstall optimize · {shorten(sanitize_line(' '.join(report.run.command)), page.width - 20)}")
    page.blank()
    page.line(_headline(report))
    for title, remedies in _groups(report):
        if remedies:
            page.blank()
            page.line(f"  {title}")
            for remedy in remedies:
                page.line(shorten(f"    {sanitize_line(remedy.name)}", page.width))
                page.line(shorten(f"      {_result(remedy)}", page.width))
    page.blank()
    for remark in answer.remarks:
        page.line(f"  {sanitize_line(remark)}")
    return page


def markdown(answer: OptimizeResult) -> str:
    """The report for a pull request."""
    return run_markdown.render(answer.report)


def _groups(report: Report) -> list[tuple[str, list[TriedRemedy]]]:
    """The remedies under their titles; those with a measured gain before the others."""
    rejected = [remedy for remedy in report.remedies if not remedy.kept]
    tried = [remedy for remedy in rejected if remedy.status not in (*_UNTRIED, RemedyStatus.ADVICE)]
    advised = [remedy for remedy in rejected if remedy.status is RemedyStatus.ADVICE]
    return [
        ("kept", [remedy for remedy in report.remedies if remedy.kept]),
        ("tried, not kept", sorted(tried, key=lambda remedy: remedy.speedup is None)),
        ("advice", sorted(advised, key=lambda remedy: remedy.speedup is None)),
        ("not tried", [remedy for remedy in rejected if remedy.status in _UNTRIED]),
    ]


def _headline(report: Report) -> str:
    interval = report.total_ci95
    if report.total_speedup is None:
        if any(remedy.status is RemedyStatus.UNTRIED for remedy in report.remedies):
            return "  nothing was kept, but not everything was tried: a larger --budget may find more"
        return "  nothing was kept: the program runs as fast as this search can make it"
    ends = f"{units.factor(interval[0])} and {units.factor(interval[1])}" if interval else ""
    between = f" (95 % between {ends} in these runs)" if interval else ""
    doubt = ", not certain" if interval and interval[0] <= 1 else ""
    return f"  {units.factor(report.total_speedup)} faster{doubt}{between}{_same(report)}"


def _same(report: Report) -> str:
    """What the report's sameness means; nothing for reports that were written before there was one."""
    if any(remedy.exactness == "training-changing" for remedy in report.remedies if remedy.kept):
        return ", and training is changed, as you allowed"
    sameness = report.sameness
    less = any(remedy.exactness == "output-changing" for remedy in report.remedies if remedy.kept)
    written = "; less is written, as you allowed" if less else ""
    return f", {sameness}: {SAMENESS_MEANS[sameness]}{written}" if sameness else ""


def _result(remedy: TriedRemedy) -> str:
    """What came of it, in one line."""
    parts = []
    if remedy.speedup is not None:
        between = f" [{remedy.ci95[0]:.2f} to {remedy.ci95[1]:.2f}]" if remedy.ci95 else ""
        parts.append(f"{remedy.speedup:.2f}×{between}")
    if remedy.predicted_speedup is not None:
        parts.append(f"predicted {remedy.predicted_speedup:.2f}×")
    if remedy.kept and remedy.sameness:
        parts.append(f"{remedy.sameness}: {SAMENESS_MEANS[remedy.sameness]}")
    if remedy.why_not:
        parts.append(sanitize_line(remedy.why_not))
    return ", ".join(parts)
