"""What the gate found, for the terminal and as Markdown for a pull request."""

from __future__ import annotations

import shlex
import statistics
from typing import TYPE_CHECKING

from rich.console import Console

from unstall.report import markdown
from unstall.report.layout import Page
from unstall.text import units
from unstall.text.sanitize import plain

if TYPE_CHECKING:
    from unstall.records.comparison import GateResult, Pair, Slowdown

_PHASES = 5
_NOTABLE = 0.005  # of a step
_UNKNOWN = 10.0  # an interval from one bound to so many times that tells nothing
_COLOURS = {"pass": "green", "regression": "red", "cannot tell": "yellow"}


def render(found: GateResult, console: Console) -> None:
    """Print the answer, fitted to the console's width."""
    page = Page.fitting(console.width)
    page.rule("unstall gate")
    page.paragraph(headline(found), f"bold {_COLOURS[found.decision]}")
    page.blank()
    page.field("Baseline", found.baseline)
    page.field("Candidate", found.candidate)
    page.field("Command", shlex.join(found.command))
    page.phrases("Pairs", _counts(found))
    page.blank()
    page.table("Step", _HEADER, _rows(found))
    page.bullets("Mind", found.notes, 3)
    page.show(console)


def as_markdown(found: GateResult) -> str:
    """The answer for a pull request; strings of the programs cannot add markup."""
    sign = {"pass": "✅", "regression": "❌", "cannot tell": "❔"}[found.decision]
    escape = markdown.escape
    lines = ["### unstall gate", "", f"{sign} **{escape(headline(found))}**", ""]
    lines += [f"- Baseline: {escape(found.baseline)}", f"- Candidate: {escape(found.candidate)}"]
    lines += [f"- Command: {escape(shlex.join(found.command))}", f"- Pairs: {escape(' · '.join(_counts(found)))}"]
    lines += ["", f"| {' | '.join(('phase', *_HEADER[1:]))} |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(map(escape, row))} |" for row in _rows(found)]
    if found.notes:
        lines += ["", *(f"- {escape(note)}" for note in found.notes)]
    return "\n".join(lines) + "\n"


def failed_as_markdown(why: str) -> str:
    """For a pull request whose gate could not be held: the reason, and the last lines of the program if it has them."""
    first, *rest = why.splitlines() or ["unknown"]
    lines = ["### unstall gate", "", f"❔ **cannot tell: {markdown.escape(first)}**"]
    if rest:
        lines += ["", *(f"> {markdown.escape(line.removeprefix('  | '))}  " for line in rest)]
    return "\n".join(lines) + "\n"


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
