"""What the gate found, for the terminal and as Markdown for a pull request."""

from __future__ import annotations

import shlex
import statistics
from typing import TYPE_CHECKING

from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage, escape
from unstall.report.thresholds import COMPARED_PHASE, UNKNOWN_RATIO
from unstall.text import units
from unstall.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from unstall.records.comparison import GatePair, GateResult, Slowdown

_PHASES = 5
_COLOURS = {"pass": "green", "regression": "red", "cannot tell": "yellow"}
_SIGNS = {"pass": "✅", "regression": "❌", "cannot tell": "❔"}


def page(result: GateResult, width: int = 100) -> Page:
    """The answer for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), result)


def markdown(result: GateResult) -> str:
    """The answer for a pull request."""
    return _fill(MarkdownPage(), result).as_text()


def failure_markdown(why: str) -> str:
    """For a pull request whose gate could not be held: the reason, and the last lines of the program if it has them."""
    first, *output = why.splitlines() or ["unknown"]
    lines = ["### unstall gate", "", f"{_SIGNS['cannot tell']} **cannot tell: {escape(first)}**"]
    if output:
        lines += ["", *(f"> {escape(line.removeprefix('  | '))}  " for line in output)]
    return "\n".join(lines) + "\n"


def _fill(page: Page, result: GateResult) -> Page:
    page.rule("unstall gate")
    page.paragraph(headline(result), f"bold {_COLOURS[result.decision]}", _SIGNS[result.decision])
    page.blank()
    page.field("Baseline", result.baseline)
    page.field("Candidate", result.candidate)
    page.field("Command", shlex.join(result.command))
    page.phrases("Pairs", _counts(result))
    page.blank()
    page.bullets(
        "Different",
        [f"{each.name}: {sanitize_line(each.a)} → {sanitize_line(each.b)}" for each in result.differences],
        2,
    )
    page.table("Step", _HEADER, _rows(result))
    page.bullets("Mind", result.notes, 3)
    return page


def headline(result: GateResult) -> str:
    """The answer in a sentence."""
    allowed = units.percent(result.allowance)
    slowdown = result.slowdown
    if slowdown is None:
        return f"cannot tell: {sanitize_line(result.notes[-1]) if result.notes else 'too few pairs'}"
    change = f"{_signed(slowdown.value)} time a step ({_between(slowdown)})"
    if result.decision == "regression":
        return f"regression: {change}; {allowed} is allowed"
    if result.decision == "pass":
        return f"no regression of more than {allowed}: {change}"
    return f"cannot tell whether it is more than {allowed} slower: {change}"


def pair_line(pair: GatePair, counted: int, look: int) -> str:
    """One line of progress. ``look``: the number of pairs after which the gate may end next."""
    times = f"baseline {units.seconds(pair.baseline_s)}, candidate {units.seconds(pair.candidate_s)} a step"
    if not pair.counts:
        return f"set aside (other programs used the machine unevenly): {times}"
    return f"pair {counted} of at least {look}: {times} ({_signed(pair.candidate_s / pair.baseline_s)})"


_HEADER = ("", "baseline", "candidate", "change")


def _rows(result: GateResult) -> list[tuple[str, str, str, str]]:
    """The medians over the runs that were compared; the change of the step is the answer's own estimate."""
    counted = [pair for pair in result.pairs if pair.counts]
    if not counted:
        return []
    step = [statistics.median(times) for times in zip(*[(pair.baseline_s, pair.candidate_s) for pair in counted])]
    change = result.slowdown.value if result.slowdown else step[1] / step[0]
    rows = [("step", units.seconds(step[0]), units.seconds(step[1]), _signed(change))]
    notable = [phase for phase in result.phases if max(phase.baseline_s, phase.candidate_s) > COMPARED_PHASE * step[0]]
    for phase in notable[:_PHASES]:
        grown = _signed(phase.candidate_s / phase.baseline_s) if phase.baseline_s else "new"
        rows.append((phase.name, units.seconds(phase.baseline_s), units.seconds(phase.candidate_s), grown))
    return rows


def _counts(result: GateResult) -> list[str]:
    counted = sum(pair.counts for pair in result.pairs)
    return [
        f"{counted} compared",
        *([f"{len(result.pairs) - counted} set aside"] if counted < len(result.pairs) else []),
        (f"{units.seconds(result.duration_s)} in all"),
    ]


def _between(slowdown: Slowdown) -> str:
    if slowdown.high > UNKNOWN_RATIO * slowdown.low:
        return "too noisy for an interval"
    return f"{_signed(slowdown.low)} to {_signed(slowdown.high)}"


def _signed(ratio: float) -> str:
    """A change of time: 1.043 is "+4.3 %"."""
    change = ratio - 1
    return f"{'+' if change >= 0 else '−'}{units.share(round(abs(change), 3))}"
