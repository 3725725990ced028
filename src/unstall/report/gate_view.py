"""What the gate found, for the terminal and as Markdown for a pull request."""

from __future__ import annotations

import shlex
import statistics
from typing import TYPE_CHECKING

from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage, escape
from unstall.text import units
from unstall.text.sanitize import plain

if TYPE_CHECKING:
    from unstall.records.comparison import GateResult, Pair, Slowdown

_PHASES = 5
_NOTABLE = 0.005  # of a step
_UNKNOWN = 10.0  # an interval from one bound to so many times that tells nothing
_COLOURS = {"pass": "green", "regression": "red", "cannot tell": "yellow"}
_SIGNS = {"pass": "✅", "regression": "❌", "cannot tell": "❔"}


def page(found: GateResult, width: int = 100) -> Page:
    """The answer for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), found)


def markdown(found: GateResult) -> str:
    """The answer for a pull request."""
    return _fill(MarkdownPage(), found).as_text()


def failure_markdown(why: str) -> str:
    """For a pull request whose gate could not be held: the reason, and the last lines of the program if it has them."""
    first, *rest = why.splitlines() or ["unknown"]
    lines = ["### unstall gate", "", f"{_SIGNS['cannot tell']} **cannot tell: {escape(first)}**"]
    if rest:
        lines += ["", *(f"> {escape(line.removeprefix('  | '))}  " for line in rest)]
    return "\n".join(lines) + "\n"


def _fill(page: Page, found: GateResult) -> Page:
    page.rule("unstall gate")
    page.paragraph(headline(found), f"bold {_COLOURS[found.decision]}", _SIGNS[found.decision])
    page.blank()
    page.field("Baseline", found.baseline)
    page.field("Candidate", found.candidate)
    page.field("Command", shlex.join(found.command))
    page.phrases("Pairs", _counts(found))
    page.blank()
    page.table("Step", _HEADER, _rows(found))
    page.bullets("Mind", found.notes, 3)
    return page


def headline(found: GateResult) -> str:
    """The answer in a sentence."""
    allowed = units.percent(found.allowance)
    slowdown = found.slowdown
    if slowdown is None:
        return f"cannot tell: {plain(found.notes[-1]) if found.notes else 'too few pairs'}"
    change = f"{_signed(slowdown.value)} time a step ({_between(slowdown)})"
    if found.decision == "regression":
        return f"regression: {change}; {allowed} is allowed"
    if found.decision == "pass":
        return f"no regression of more than {allowed}: {change}"
    return f"cannot tell whether it is more than {allowed} slower: {change}"


def pair_line(pair: Pair, counted: int, look: int) -> str:
    """One line of progress. ``look``: the number of pairs after which the gate may end next."""
    times = f"baseline {units.seconds(pair.baseline_s)}, candidate {units.seconds(pair.candidate_s)} a step"
    if not pair.counts:
        return f"set aside (others used the machine unevenly): {times}"
    return f"pair {counted} of at least {look}: {times} ({_signed(pair.candidate_s / pair.baseline_s)})"


_HEADER = ("", "baseline", "candidate", "change")


def _rows(found: GateResult) -> list[tuple[str, str, str, str]]:
    """The medians over the runs that were compared; the change of the step is the answer's own estimate."""
    kept = [pair for pair in found.pairs if pair.counts]
    if not kept:
        return []
    step = [statistics.median(times) for times in zip(*[(pair.baseline_s, pair.candidate_s) for pair in kept])]
    change = found.slowdown.value if found.slowdown else step[1] / step[0]
    rows = [("step", units.seconds(step[0]), units.seconds(step[1]), _signed(change))]
    notable = [one for one in found.phases if max(one.baseline_s, one.candidate_s) > _NOTABLE * step[0]]
    for one in notable[:_PHASES]:
        grown = _signed(one.candidate_s / one.baseline_s) if one.baseline_s else "new"
        rows.append((one.name, units.seconds(one.baseline_s), units.seconds(one.candidate_s), grown))
    return rows


def _counts(found: GateResult) -> list[str]:
    kept = sum(pair.counts for pair in found.pairs)
    return [
        f"{kept} compared",
        *([f"{len(found.pairs) - kept} set aside"] if kept < len(found.pairs) else []),
        (f"{units.seconds(found.duration_s)} in all"),
    ]


def _between(slowdown: Slowdown) -> str:
    if slowdown.high > _UNKNOWN * slowdown.low:
        return "too noisy for an interval"
    return f"{_signed(slowdown.low)} to {_signed(slowdown.high)}"


def _signed(ratio: float) -> str:
    """A change of time: 1.043 is "+4.3 %"."""
    change = ratio - 1
    return f"{'+' if change >= 0 else '−'}{units.share(round(abs(change), 3))}"
