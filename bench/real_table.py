"""What `make real-bench` keeps of each case, and the page that it writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from machine import describe, other_sittings, version
from real_cases import CASES

LAYOUTS = ("checkout", "installed")
WORTHWHILE = 1.1
"""A fix that gains less brought nothing: two runs of one program differ by as much on a shared machine."""
LEGEND = (
    "- **verdict**, **culprit**: what `unstall run` says before the fix. ✓: the pattern names what the maintainers",
    "  fixed; the culprit lies in a function that their fix changes. A culprit that the fix calls less often, from a",
    "  function above it, counts as wrong; whether the report names that function as a caller is counted separately.",
    "  –: the fix gains too little here for a verdict to be right or wrong.",
    "- **fix**: how many times faster the fix makes the driver's training.",
    "- **expected**: the interval that the report gives for a remedy. ✓: it holds the gain of the fix; –: the culprit",
    "  is another one, or no gain is promised.",
    "- **optimize**: what `unstall optimize` reaches, measured again; – where it was not run.",
    "",
    "| case | what the fix does | layout | verdict | culprit | fix | expected | optimize |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
)


@dataclass
class Row:
    """One case in one layout."""

    name: str
    layout: str
    pattern: str
    pattern_right: bool | None
    """None where the fix brought nothing."""
    culprit: str
    culprit_right: bool | None
    named: bool
    """The culprit is what the fix changed."""
    caller_right: bool | None
    """It is, or a caller that the report names with it."""
    confidence: str
    gain: float
    """Of the maintainers' fix."""
    timed: str = ""
    """The version of the sitting that timed it."""
    expected: dict[str, Any] = field(default_factory=dict)
    """The verdict's ``expected_gain``."""
    reached: float | None = None
    """Gain of what `unstall optimize` kept, measured again; 1 where it kept nothing, None where it was not run."""
    kept: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """What `unstall optimize` thought of and did not keep, with its reason."""
    searched: str = ""
    """The version of the sitting that `unstall optimize` is of."""
    version: str = ""
    machine: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the expected gain's interval holds the fix's; None without one, or if the culprit is another."""
        low, high = self.expected.get("low"), self.expected.get("high")
        return None if low is None or high is None or not self.named else low <= self.gain <= high


def line(row: Row) -> str:
    """One row in a line of text."""
    reached = "" if row.reached is None else f"  optimize {row.reached:.2f}x ({', '.join(row.kept) or 'nothing'})"
    marks = f"pattern {_mark(row.pattern_right)} culprit {_mark(row.culprit_right)} interval {_mark(row.holds)}"
    return f"{row.name:30} {row.layout:10} fix {row.gain:.2f}x {marks}{reached}  {row.pattern}  {row.culprit}"


def markdown(rows: Sequence[Row]) -> str:
    """The table of docs/, and what it comes to."""
    lines = [
        *summary(rows),
        *kept_gains(rows),
        *searches(rows),
        "",
        *([rest, ""] if (rest := _other_sittings(rows)) else []),
        *LEGEND,
    ]
    cases = {case.name: case for case in CASES}
    for row in rows:
        case = cases[row.name]
        expected = f"{row.expected['low']:.2f}–{row.expected['high']:.2f}×" if row.expected else "–"
        reached = "–" if row.reached is None else f"{row.reached:.2f}× ({', '.join(row.kept) or 'nothing'})"
        cells = (
            f"[{row.name}](https://github.com/{case.repository}/commit/{case.fixed_in})", case.fix,
            row.layout, f"{row.pattern} {_mark(row.pattern_right)}",
            f"{f'`{row.culprit}`' if row.culprit else 'none'} {_mark(row.culprit_right)}", f"{row.gain:.2f}×",
            f"{expected} {_mark(row.holds)}".replace("– –", "–"), reached,
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def worthwhile(rows: Sequence[Row]) -> str:
    """The table of README: the fixes that are worth it, the largest first, a row for each."""
    cases = {case.name: case for case in CASES}
    of_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.pattern_right is not None:
            of_case.setdefault(row.name, {})[row.layout] = row
    lines = [
        "| before this fix | the fix | `unstall run` says | right pattern | function | fix | `unstall optimize` |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, layouts in sorted(of_case.items(), key=lambda item: -max(row.gain for row in item[1].values())):
        case, row = cases[name], layouts.get(LAYOUTS[0]) or next(iter(layouts.values()))
        reached = [each.reached for each in layouts.values() if each.reached is not None]
        cells = (
            f"[{case.repository.partition('/')[2]}](https://github.com/{case.repository}/commit/{case.fixed_in})",
            case.fix, row.pattern, *(_marks(layouts, right) for right in ("pattern_right", "culprit_right")),
            f"{row.gain:.2f}×", f"{reached[0]:.2f}×" if reached else "–",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *summary(rows)]) + "\n"


def _marks(layouts: Mapping[str, Row], right: str) -> str:
    """One mark where both layouts agree, else one for each."""
    marks = [_mark(getattr(layouts[layout], right)) for layout in LAYOUTS if layout in layouts]
    return marks[0] if len(set(marks)) == 1 else ", ".join(marks)


def summary(rows: Sequence[Row]) -> list[str]:
    """Shares of what is right, by layout, and what optimize reaches of the fixes' gain."""
    text = []
    for layout in LAYOUTS:
        judged = [row for row in rows if row.layout == layout and row.pattern_right is not None]
        if judged:
            patterns, culprits = sum(bool(r.pattern_right) for r in judged), sum(bool(r.culprit_right) for r in judged)
            callers = sum(bool(row.caller_right) for row in judged)
            text.append(
                f"- {layout}: pattern {patterns} of {len(judged)}, culprit {culprits} of {len(judged)}, culprit or one "
                f"of the callers named with it {callers} of {len(judged)}."
            )
    idle = {row.name for row in rows if row.pattern_right is None}
    if idle:
        text.append(f"- {len(idle)} of {len({row.name for row in rows})} fixes gain less than {WORTHWHILE - 1:.0%}.")
    held = [row.holds for row in rows if row.holds is not None]
    if held:
        worth = [row.holds for row in rows if row.holds is not None and row.gain >= WORTHWHILE]
        text.append(
            f"- Where the culprit is what the fix changed, the interval of the expected gain holds the fix's in "
            f"{sum(held)} of {len(held)}: of fixes that are worth it in {sum(worth)} of {len(worth)}, of the others in "
            f"{sum(held) - sum(worth)} of {len(held) - len(worth)}."
        )
    tried = [row for row in rows if row.reached is not None and row.gain >= WORTHWHILE]
    if tried:
        share = math.exp(mean(math.log((row.reached or 1.0) / row.gain) for row in tried))
        idle_ones = sum(not row.kept for row in tried)
        text.append(
            f"- `unstall optimize`: gain over the fix's, not capped, geometric mean of {len(tried)}: {share:.2f}. In "
            f"{idle_ones} it kept nothing."
        )
    return text


def kept_gains(rows: Sequence[Row]) -> list[str]:
    """A line on the fixes that were timed in an earlier sitting than their verdicts."""
    kept = {row.name for row in rows if row.timed not in ("", row.version)}
    text = f"- What {len(kept)} of the fixes gain was timed in an earlier sitting than their verdicts."
    return [text] if kept else []


def searches(rows: Sequence[Row]) -> list[str]:
    """A line on the versions that `unstall optimize` is of, where they are known."""
    cases = Counter(row.searched for row in rows if row.searched)
    versions = [f"{count} of version {version}" for version, count in cases.most_common()]
    return [f"- What `unstall optimize` reaches: {', '.join(versions)}."] if versions else []


def sitting() -> tuple[str, str]:
    """Version and machine of the rows that are made now."""
    return version("src", "bench/real", "bench/real.py"), describe()


def _other_sittings(rows: Sequence[Row]) -> str:
    return other_sittings({f"{row.name}, {row.layout}": (row.version, row.machine) for row in rows}, sitting())


def _mark(right: bool | None) -> str:
    return "–" if right is None else "✓" if right else "✗"
