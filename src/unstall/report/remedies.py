"""What `unstall optimize` found, on one screen: the total, what was kept, what was not and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from unstall.records.report import Remedy, RemedyStatus, Report
from unstall.report.layout import show
from unstall.text import units
from unstall.text.sanitize import plain, shorten

_NARROWEST = 60
_UNTRIED = (RemedyStatus.UNTRIED, RemedyStatus.BELOW_WORTH, RemedyStatus.ADVICE)


def render(report: Report, interval: tuple[float, float] | None, remarks: Sequence[str], console: Console) -> None:
    """Print it. ``interval``: of the total speed-up, 95 %. ``remarks``: lines for the end."""
    from rich.text import Text

    width = max(_NARROWEST, console.width)
    show(map(Text, lines(report, interval, remarks, width)), console)


def lines(report: Report, interval: tuple[float, float] | None, remarks: Sequence[str], width: int) -> Iterator[str]:
    """The lines of the screen."""
    yield f"unstall optimize · {shorten(plain(' '.join(report.run.command)), width - 20)}"
    yield ""
    yield _headline(report, interval)
    kept = [one for one in report.remedies if one.kept]
    others = [one for one in report.remedies if not one.kept]
    untried = [one for one in others if one.status in _UNTRIED]
    tried = sorted((one for one in others if one.status not in _UNTRIED), key=lambda one: one.speedup is None)
    for title, group in (("kept", kept), ("tried, not kept", tried), ("not tried", untried)):
        if group:
            yield ""
            yield f"  {title}"
            for one in group:
                yield from _remedy(one, width)
    if remarks:
        yield ""
        for remark in remarks:
            yield f"  {plain(remark)}"


def _headline(report: Report, interval: tuple[float, float] | None) -> str:
    if report.total_speedup is None:
        if any(one.status is RemedyStatus.UNTRIED for one in report.remedies):
            return "  nothing was kept, and not all was tried: a larger --budget may find more"
        return "  nothing was kept: the program runs as fast as this search can make it"
    between = f" (95 % between {units.factor(interval[0])} and {units.factor(interval[1])})" if interval else ""
    exact = all(one.exactness == "exact" for one in report.remedies if one.kept)
    same = "the same results, bit for bit" if exact else "the same results within rounding"
    if any(one.exactness == "training-changing" for one in report.remedies if one.kept):
        same = "and training is changed, as you allowed"
    return f"  {units.factor(report.total_speedup)} faster{between}, {same}"


def _remedy(one: Remedy, width: int) -> Iterator[str]:
    yield shorten(f"    {plain(one.name)}", width)
    parts = []
    if one.speedup is not None:
        between = f" [{one.ci95[0]:.2f} to {one.ci95[1]:.2f}]" if one.ci95 else ""
        parts.append(f"{one.speedup:.2f}×{between}")
    if one.predicted_speedup is not None:
        parts.append(f"predicted {one.predicted_speedup:.2f}×")
    if one.kept:
        parts.append("bit for bit the same" if one.exactness == "exact" else one.exactness)
    if one.why_not:
        parts.append(plain(one.why_not))
    yield shorten(f"      {', '.join(parts)}", width)
