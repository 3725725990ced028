"""How well the pipeline model predicts what `unstall simplify` then measures, over all experiments that it chooses.

    make predictions-bench                       the zoo, and the table in docs/prediction-accuracy.md
    python bench/predictions.py --only grid_env --budget 90s

Each program of the zoo is studied in its `slow` variant, with the experiments that the study picks itself. An
experiment's prediction is made from the watched run, from what the component's calls take, and from the phases of the
experiment's base, which is measured in turn with the arm; nothing of the arm is known to it. The error is that of the
speed-up, predicted over measured; delays, which make a program slower, count apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from accuracy import ROOT, load_cases
from machine import describe
from simplify import NEAR, number, study

_DELAY = "delay"


@dataclass
class Row:
    """One experiment. ``low`` and ``high``: the ends of the measured ratio's interval."""

    program: str
    name: str
    kind: str
    measured: float
    low: float
    high: float
    predicted: float | None
    conclusive: bool
    machine: str

    @property
    def error(self) -> float:
        """Of the predicted ratio, relative to the measured one; infinite where nothing was predicted."""
        return abs(self.predicted / self.measured - 1) if self.predicted else float("inf")

    @property
    def inside(self) -> bool:
        """Whether the prediction is in the interval of what was measured."""
        return self.predicted is not None and self.low <= self.predicted <= self.high


def main() -> int:
    """Study the cases, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, default=ROOT / "tests" / "zoo")
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--budget", default="60s", help="of each study")
    parser.add_argument("--keep", type=Path, help="folder to keep the JSON reports in")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows: a bench in several sittings")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    options.auto = True
    wanted = set(options.only.split(",")) if options.only else None
    rows = (
        [Row(**row) for row in json.loads(options.rows.read_text())] if options.rows and options.rows.exists() else []
    )
    for case in load_cases(options.zoo):
        if wanted is not None and case.name not in wanted:
            continue
        report = study(case, options)
        if report is None:
            continue
        rows = [row for row in rows if row.program != case.name]
        for one in report["experiments"]:
            rows.append(
                Row(
                    program=case.name,
                    name=one["name"],
                    kind=one["intervention"],
                    measured=one["ratio"],
                    low=one["ci95"][0],
                    high=one["ci95"][1],
                    predicted=one.get("predicted_ratio"),
                    conclusive=one.get("conclusive", True),
                    machine=describe(),
                )
            )
            print(line(rows[-1]), flush=True)
        if options.rows:
            options.rows.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
        if options.write:
            options.write.write_text(markdown(rows), encoding="utf-8")
    print(summary(rows))
    return 0


def counted(rows: Sequence[Row]) -> list[Row]:
    """The speed-ups that were measured well enough to be compared with."""
    return [row for row in rows if row.conclusive and row.kind != _DELAY]


def line(row: Row) -> str:
    """One line for the terminal."""
    mark = "✓" if row.error <= NEAR else "~" if row.inside else "✗"
    ends = f"({number(row.low)} to {number(row.high)})"
    return f"{mark}  {row.program:24} {row.name:48} {number(row.measured):>7} {ends:20} {number(row.predicted):>7}"


def summary(rows: Sequence[Row]) -> str:
    """The figures of the goal."""
    return f"{told(counted(rows))}; delays: {told([row for row in rows if row.kind == _DELAY])}"


def told(rows: Sequence[Row]) -> str:
    """Median error and share within 15 %; what could not be predicted counts as far off."""
    if not rows:
        return "none"
    near = sum(row.error <= NEAR for row in rows)
    median = statistics.median(row.error for row in rows)
    return f"median error {median:.1%}, {near} of {len(rows)} ({near / len(rows):.0%}) within {NEAR:.0%}"


_GROUPS = {
    "stub": "a function free",
    "cached": "the loader free",
    **dict.fromkeys(
        ("backward", "optimizer", "callbacks", "env"), "backward, optimizer, callbacks or environment free"
    ),
    "interaction": "a second one, once the first is free",
    **dict.fromkeys(("setting", "threads"), "settings"),
}


def markdown(rows: Sequence[Row]) -> str:
    """The table for docs/."""
    machines = "; ".join(dict.fromkeys(row.machine for row in rows))
    speedups = counted(rows)
    lines = [
        "# Accuracy of the predictions",
        "",
        f"`make predictions-bench` on {machines}. **Predicted against measured speed-ups: {told(speedups)}.**",
        "",
        "Every program of the zoo, in its slow variant, with the experiments that `unstall simplify` picked itself",
        "within a minute. The prediction knows the watched run, what the calls of the function take, how much of",
        "backward is inside it, how cold it leaves the caches, what answers from a record take, and how long the",
        "phases take in the experiment's own base, which was measured in turn with the arm; nothing of the arm. The",
        "constants of the model were chosen on the same programs, from other runs.",
        "Experiments that were inconclusive are left out, and delays count apart. A row is of the last sitting in",
        "which its program was studied.",
        "",
        "| experiments | how many | median error | within 15 % | in the measured interval |",
        "| --- | --- | --- | --- | --- |",
    ]
    groups: dict[str, list[Row]] = {name: [] for name in [*_GROUPS.values(), "others"]}
    for row in speedups:
        groups[_GROUPS.get(row.kind, "others")].append(row)
    groups |= {"**all**": speedups, "delays": [row for row in rows if row.kind == _DELAY]}
    for name, group in groups.items():
        if group:
            lines.append(f"| {name} | {len(group)} | {_figures(group)} |")
    lines += [
        "",
        "| program | experiment | measured | 95 % | predicted | error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        error = f"{row.error:.0%}" if row.predicted else "–"
        lines.append(
            f"| {row.program} | {row.name}{'' if row.conclusive else ' (inconclusive)'} | {number(row.measured)} "
            f"| {number(row.low)} to {number(row.high)} | {number(row.predicted)} | {error} |"
        )
    return "\n".join(lines) + "\n"


def _figures(rows: Sequence[Row]) -> str:
    near = sum(row.error <= NEAR for row in rows) / len(rows)
    inside = sum(row.inside for row in rows) / len(rows)
    return f"{statistics.median(row.error for row in rows):.1%} | {near:.0%} | {inside:.0%}"


if __name__ == "__main__":
    sys.exit(main())
