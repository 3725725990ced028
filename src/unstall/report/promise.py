"""What a finding promises, in words: a ceiling, an expected gain, each with its interval and how it is known.

Where confidence is low the interval alone is printed: a factor would say more than is known.
"""

from __future__ import annotations

from unstall.records.report import Finding, Report
from unstall.records.speedup import Speedup
from unstall.records.vocabulary import WITHOUT_CULPRIT
from unstall.report.thresholds import ABOVE_CEILING, NOTICEABLE, UNBOUNDED
from unstall.text import units
from unstall.text.sanitize import sanitize_line


def ceiling(finding: Finding, condition: str = "") -> str:
    """As "ceiling without it 2.3× (1.8 to 3.1, estimated)", with its condition; empty where none is known."""
    text = ceiling_figure(finding)
    return text and " ".join(filter(None, ("ceiling", sanitize_line(condition), text)))


def ceiling_figure(finding: Finding) -> str:
    """The same without its first word."""
    if finding.ceiling is not None:
        return figure(finding.ceiling) if finding.ceiling.value >= NOTICEABLE else ""
    # A report of an earlier version, or a plug-in's, has the factor alone.
    if finding.expected_gain is not None or finding.pattern in WITHOUT_CULPRIT:
        return ""
    if not units.known(finding.headroom) or finding.headroom < NOTICEABLE:
        return ""
    return f"{factor(finding.headroom)} ({finding.headroom_known_by})"


def gain(finding: Finding) -> str:
    """As "expected gain of a cheaper transform 1.6× (1.2 to 2.4, estimated)"; empty where none is known."""
    expected = finding.expected_gain
    if expected is None or expected.value < NOTICEABLE:
        return ""
    return f"expected gain of {sanitize_line(expected.remedy)} {figure(expected)}"


def first(finding: Finding) -> str:
    """The ceiling, or the gain where that alone is known; empty where the finding promises nothing."""
    return ceiling(finding) or gain(finding)


def ceiling_line(report: Report) -> str | None:
    """The ceiling in full: the factor, steps a second from and to, who knows better; None where nobody is blamed."""
    verdict = report.verdict
    if report.run.steps == 0 or not units.known(verdict.headroom) or verdict.pattern in WITHOUT_CULPRIT:
        return None
    text = ceiling_figure(verdict)
    if not text:
        return None if verdict.ceiling is None or gain(verdict) else f"no noticeable gain ({verdict.headroom_known_by})"
    speed = report.throughput.steps_per_s
    unsure = verdict.ceiling is not None and _is_range(verdict.ceiling)
    if units.known(speed) and not unsure:
        text += f", {units.rate(speed, 'steps')} → {units.rate(speed * verdict.headroom, 'steps')}"
    measurable = report.kind == "run" and "fixed" not in verdict.traits
    return f"{text}; `unstall simplify` measures it" if unsure and measurable else text


def gain_line(report: Report) -> str | None:
    """The expected gain of the verdict's remedy in full; None where none is known."""
    text = gain(report.verdict)
    if not text or report.run.steps == 0:
        return None
    return f"{text}; the upper end only if what is around it gets cheaper, too" if _cures_more(report.verdict) else text


def _cures_more(finding: Finding) -> bool:
    """Whether the gain may be larger than the ceiling, which is the culprit's alone."""
    expected, culprits = finding.expected_gain, finding.ceiling
    if expected is None or culprits is None or expected.high >= UNBOUNDED:
        return False
    return expected.high >= ABOVE_CEILING * culprits.high


def factor(value: float) -> str:
    """A speed-up (≥ 1) to the precision that such a figure can have: "4.1×", "1.36×"."""
    return units.factor(_rounded(value))


def figure(speedup: Speedup) -> str:
    """The size and how it is known: "2.3× (1.8 to 3.1, estimated)", or "1.2 to 4.6× (estimated)"."""
    return f"{size(speedup)} ({_known(speedup)})"


def size(speedup: Speedup) -> str:
    """The factor; where it is hardly known, the interval, "1.8× or more" if nothing bounds it."""
    if not _is_range(speedup):
        return factor(speedup.value)
    low = factor(speedup.low)
    return f"{low} or more" if speedup.high >= UNBOUNDED else f"{low.removesuffix('×')} to {factor(speedup.high)}"


def knowledge(speedup: Speedup) -> str:
    """The interval, where the size does not say it, how it is known, and how surely."""
    return f"{_known(speedup)}, {speedup.confidence} confidence"


def _known(speedup: Speedup) -> str:
    if _is_range(speedup):
        return speedup.known_by
    return f"{units.number(_rounded(speedup.low))} to {units.number(_rounded(speedup.high))}, {speedup.known_by}"


def _is_range(speedup: Speedup) -> bool:
    return speedup.confidence == "low"


def _rounded(value: float) -> float:
    return round(value, 1 if value >= 2 else 2)
