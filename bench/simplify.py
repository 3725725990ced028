"""How well `unstall simplify` knows what a program is without a part: measured headroom against the truth by hand.

    make simplify-bench                          the zoo's stubbable cases, and the table in docs/simplify-accuracy.md
    python bench/simplify.py --only grid_env --budget 90s

For each program of the zoo whose culprit is a function that can be stubbed, its `slow` variant is studied within the
budget. There are two truths: its rate with the culprit made free by hand, over its own, in turns of one process
(free.py), from before the study and after it; and the rate of its `fast` variant, the expert's fix, which pays for the
culprit in its new form, in plain runs in turn. A case is right when the truth lies in the 95 % interval of the
headroom, or within 15 % of it.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy import ROOT, command, load_cases, rate, with_shared
from freed import log_ratios, ratio, stubbable
from kept_rows import keep, rows_in
from machine import describe, other_sittings, version

NEAR = 0.15
WIDEST = 4.0
"""An interval from one end to the other; a wider one says nothing, whatever lies in it."""


@dataclass
class Row:
    """One case: what was measured beside the truth."""

    name: str
    component: str
    measured: float | None
    low: float | None
    high: float | None
    predicted: float | None
    free: float | None
    fixed: float | None
    seconds: float
    note: str = ""
    free_low: float | None = None
    free_high: float | None = None
    version: str = ""
    machine: str = ""

    def agrees(self, truth: float | None) -> bool:
        """Whether the truth is in the interval or near."""
        if self.measured is None or truth is None or self.low is None or self.high is None:
            return False
        near = abs(math.log(self.measured / truth)) <= math.log1p(NEAR)
        return near or (self.low <= truth <= self.high and self.high < WIDEST * self.low)

    @property
    def overlaps(self) -> bool:
        """Whether the interval and that of the truth, which is an estimate too, have something in common."""
        if self.low is None or self.high is None or self.free_low is None or self.free_high is None:
            return False
        return self.low <= self.free_high and self.free_low <= self.high and self.high < WIDEST * self.low

    @property
    def bounds(self) -> bool:
        """Whether the fix brought no more than was measured without the culprit: the stub leaves nothing of it."""
        if self.measured is None or self.fixed is None or self.low is None or self.high is None:
            return False
        return self.high < WIDEST * self.low and self.fixed <= max(self.high, (1 + NEAR) * self.measured)


def main() -> int:
    """Study the cases, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, default=ROOT / "tests" / "zoo")
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--budget", default="60s", help="of each study")
    parser.add_argument("--auto", action="store_true", help="let it choose all trials, not the culprit's stub alone")
    parser.add_argument("--twin-seconds", type=float, default=4.0, help="of each plain run of slow and fast")
    parser.add_argument("--twin-rounds", type=int, default=2, help="of two plain runs of each")
    parser.add_argument("--free-seconds", type=float, default=23.0, help="of each run with the culprit free")
    parser.add_argument("--measure", default="free,study,twin", help="which of these; the others as the rows have them")
    parser.add_argument("--keep", type=Path, help="folder to keep the JSON reports in")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows: a bench in several sittings")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    options.zoo = options.zoo.resolve()
    wanted = set(options.only.split(",")) if options.only else None
    rows = rows_in(options.rows, Row)
    for case in load_cases(options.zoo):
        if case.name in wanted if wanted is not None else stubbable(case):
            row = next((row for row in rows if row.name == case.name), None)
            if row is None:
                row = Row(case.name, case.culprit, None, None, None, None, None, None, 0.0)
                rows.append(row)
            judge(row, case, options)
            row.version, row.machine = sitting()
            print(line(row), flush=True)
            keep(options.rows, rows)
    if options.write:
        options.write.write_text(markdown(rows, options), encoding="utf-8")
    print(summary(rows))
    return 0


def sitting() -> tuple[str, str]:
    """Version and machine of the rows that are made now."""
    return version("src"), describe()


def judge(row: Row, case: Any, options: argparse.Namespace) -> None:
    """Study the slow variant, run it with the culprit free in turn, run both variants plain."""
    parts = set(options.measure.split(","))
    # The truth from before the study and after it: within minutes a shared machine becomes another.
    words = command(case, options.zoo, "slow", options.free_seconds)
    before = log_ratios(case.culprit, words) if "free" in parts else []
    if "study" in parts:
        study_again(row, case, options)
    if "free" in parts:
        row.free, row.free_low, row.free_high = ratio(before + log_ratios(case.culprit, words))
    if "twin" in parts:
        row.fixed = fixed(case, options)


def study_again(row: Row, case: Any, options: argparse.Namespace) -> None:
    """Study the slow variant; what that says of the culprit goes into the row, which keeps its truth."""
    began = time.monotonic()
    report = study(case, options)
    row.seconds = time.monotonic() - began
    row.component, row.measured, row.low, row.high, row.predicted = case.culprit, None, None, None, None
    if report is None:
        row.note = "no report"
        return
    names = [case.culprit, *case.also_culprits]
    found = [one for one in report["experiments"] if one.get("component") in names and one["intervention"] == "stub"]
    if not found:
        failures = "; ".join(f"{one['name']}: {one['why']}" for one in report.get("study", {}).get("failures", []))
        row.note = failures or "not tried"
        return
    one = min(found, key=lambda one: names.index(one["component"]))
    row.component, row.measured, row.predicted = one["component"], one["ratio"], one.get("predicted_ratio")
    row.low, row.high = one["ci95"]
    row.note = "; ".join(one.get("notes", []))


def study(case: Any, options: argparse.Namespace) -> dict[str, Any] | None:
    """The report of `unstall simplify` on the slow variant."""
    with tempfile.TemporaryDirectory() as folder:
        out = (options.keep or Path(folder)).absolute() / f"{case.name}.json"
        out.unlink(missing_ok=True)
        trials = [] if options.auto else ["--stub", case.culprit]
        words = command(case, options.zoo, "slow", 600.0)
        budget = ["--budget", options.budget, "--json", str(out)]
        result = run([sys.executable, "-m", "unstall", "simplify", *budget, *trials, "--", *words], folder)
        if not out.exists():
            print(result.stderr[-2000:], file=sys.stderr)
            return None
        loaded: dict[str, Any] = json.loads(out.read_text())
        return loaded


def fixed(case: Any, options: argparse.Namespace) -> float | None:
    """Steps a second of the fixed twin over those of the program, plain runs in turn."""
    rates: dict[str, list[float]] = {"slow": [], "fast": []}
    for variant in ("slow", "fast", "fast", "slow") * options.twin_rounds:
        with tempfile.TemporaryDirectory() as folder:
            found = rate(
                run([sys.executable, *command(case, options.zoo, variant, options.twin_seconds)], folder).stdout
            )
        if found:
            rates[variant].append(found)
    if not all(rates.values()):
        return None
    slow, fast = (math.exp(sum(map(math.log, found)) / len(found)) for found in rates.values())
    return fast / slow


def run(words: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder of its own."""
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, env=with_shared())


def number(value: float | None) -> str:
    """A factor."""
    return "–" if value is None else f"{value:.2f}×"


def ends(low: float | None, high: float | None) -> str:
    """An interval."""
    return "–" if low is None or high is None else f"{number(low)} to {number(high)}"


def mark(right: bool) -> str:
    """A tick or a cross."""
    return "✓" if right else "✗"


def line(row: Row) -> str:
    """One line for the terminal."""
    between = f"({number(row.low)} to {number(row.high)})"
    words = [
        mark(row.agrees(row.free)), f"{row.name:24} {row.component:24}",
        f"measured {number(row.measured):>7} {between:22}", f"free {number(row.free):>7}",
        f"fixed {number(row.fixed):>7} {mark(row.agrees(row.fixed))}", f"predicted {number(row.predicted):>7}",
        f"{row.seconds:4.0f} s", row.note,
    ]  # fmt: skip
    return "  ".join(words)


def summary(rows: Sequence[Row]) -> str:
    """The share that is right, and the time to answer."""
    times = sorted(row.seconds for row in rows)
    middle = times[len(times) // 2] if times else 0.0
    return (
        f"{share(rows, [row.agrees(row.free) for row in rows])} within the interval or 15 % of the program without its "
        f"culprit ({share(rows, [row.overlaps for row in rows])} overlap its interval), "
        f"{share(rows, [row.agrees(row.fixed) for row in rows])} of the fixed twin, "
        f"{share(rows, [row.bounds for row in rows])} not exceeded by the fix; "
        f"median time to answer {middle:.0f} s, longest {times[-1] if times else 0:.0f} s; {predictions(rows)}"
    )


def predictions(rows: Sequence[Row]) -> str:
    """How far the model's predictions of the same stubs are from what was measured."""
    errors = [abs(row.predicted / row.measured - 1) for row in rows if row.predicted and row.measured]
    if not errors:
        return "nothing was predicted"
    near = sum(error <= NEAR for error in errors)
    apart = [abs(row.measured / row.free - 1) for row in rows if row.measured and row.free]
    told = f"; what was measured and the truth are a median of {statistics.median(apart):.0%} apart" if apart else ""
    median = statistics.median(errors)
    return (
        f"predictions: median error {median:.0%}, {near} of {len(errors)} within {NEAR:.0%} of what was measured{told}"
    )


def share(rows: Sequence[Row], right: Sequence[bool]) -> str:
    """How many of how many."""
    return f"{sum(right)} of {len(rows)} ({sum(right) / max(len(rows), 1):.0%})"


_COLUMNS = """\
**Measured** is the speed-up that `unstall simplify` found without the culprit; **predicted** is what the pipeline
model expected. **Free** is the true speed-up: the culprit made free by hand, compared with the program as it is,
alternately within one process. **Fixed** is the speed-up of an expert's version, which still pays for the culprit in
its new form. A stub leaves nothing of the culprit, so it tells what a fix of the culprit alone can bring at most; a fix
that takes away more than the culprit may bring more. **Not exceeded** means: by no more than the interval or 15 %.
"""


def markdown(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """The table for docs/."""
    lines = [
        "# Accuracy of the experiments",
        "",
        f"`make simplify-bench`, budget {options.budget} a program. **{summary(rows)}.**",
        "",
        other_sittings({row.name: (row.version, row.machine) for row in rows}, ("", "")),
        "",
        _COLUMNS,
        "| program | without | measured | 95 % | predicted | free | 95 % | right | fixed | right | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row.name} | `{row.component}` | {number(row.measured)} | {number(row.low)} to {number(row.high)} "
            f"| {number(row.predicted)} | {number(row.free)} | {ends(row.free_low, row.free_high)} "
            f"| {mark(row.agrees(row.free))} | {number(row.fixed)} | {mark(row.agrees(row.fixed))} "
            f"| {row.seconds:.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
