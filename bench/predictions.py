"""How well a person is told beforehand what an experiment then measures, over all experiments that a study chooses.

    make predictions-bench                       the zoo, and the table in docs/prediction-accuracy.md
    python bench/predictions.py --only grid_env --budget 90s

Each program of the zoo runs in its `slow` variant, once under `unstall run` and once under `unstall simplify`, which
picks the experiments. Two things are said before any of them: the headroom of `run`'s verdict, and for each experiment
what `unstall what-if` predicts of it from the watched run alone. The error is that of the speed-up, predicted over
measured. Every measured row counts, the inconclusive ones too; delays, which make a program slower, count apart.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy import ROOT, load_cases, run_slow
from kept_rows import keep, rows_in
from machine import other_sittings
from simplify import NEAR, number, sitting, study

from unstall.model.predict import usual_error

_DELAY, _VERDICT = "delay", "verdict"
_SETTINGS = ("workers", "prefetch", "threads")
LOADER_SECTION = "## Another number of loader workers"


@dataclass
class Row:
    """One experiment and what was said of it; ``low`` and ``high`` are the ends of the measured ratio's interval."""

    program: str
    name: str
    kind: str
    measured: float
    low: float
    high: float
    predicted: float | None
    conclusive: bool
    machine: str
    version: str
    predicted_low: float | None = None
    predicted_high: float | None = None
    """Ends of the prediction's own interval; None in rows of before it was kept."""

    @property
    def holds(self) -> bool | None:
        """Whether the prediction's interval holds what was measured; None where there is none.

        Of a prediction that was kept without one, it is the least that it can be with the present constants.
        """
        if self.predicted_low is not None and self.predicted_high is not None:
            return self.predicted_low <= self.measured <= self.predicted_high
        if not self.predicted or self.kind == _VERDICT:
            return None
        error = usual_error(self.predicted, scaled=self.kind not in _SETTINGS)
        return abs(math.log(self.measured / self.predicted)) <= error

    @property
    def error(self) -> float | None:
        """The predicted ratio's error, relative to the measured one; None where nothing was predicted."""
        return abs(self.predicted / self.measured - 1) if self.predicted else None


def main() -> int:
    """Study the cases, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, default=ROOT / "tests" / "zoo")
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--budget", default="60s", help="of each study")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each program under `unstall run`")
    parser.add_argument("--keep", type=Path, help="folder to keep the JSON reports in")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows: a bench in several sittings")
    parser.add_argument(
        "--held-out",
        type=Path,
        action="append",
        default=[],
        help="rows of other programs, to be written beside the zoo's; for several sittings, several times",
    )
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    options.zoo = options.zoo.resolve()
    options.auto, options.variant = True, "slow"
    wanted = set(options.only.split(",")) if options.only else None
    rows = rows_in(options.rows, Row)
    for case in load_cases(options.zoo):
        if wanted is not None and case.name not in wanted:
            continue
        _, watched = run_slow(case, options)
        report = study(case, options)
        if report is None:
            continue
        rows = [row for row in rows if row.program != case.name]
        rows += rows_of(case.name, watched, report)
        for row in rows:
            if row.program == case.name:
                print(line(row), flush=True)
        keep(options.rows, rows)
    if options.write:
        write(options.write, markdown(rows, [rows_in(path, Row) for path in options.held_out]))
    print(summary(rows))
    return 0


def rows_of(program: str, watched: dict[str, Any] | None, report: dict[str, Any]) -> Iterator[Row]:
    """A row for each experiment; where one frees what `run`'s verdict blames, one more for the verdict's headroom."""
    verdict = watched["verdict"] if watched else {}
    version, machine = sitting()
    blamed = (verdict.get("culprit") or {}).get("function")
    for experiment in report["experiments"]:
        kind, name, predicted = experiment["intervention"], experiment["name"], experiment.get("predicted_ratio")
        said = [(kind, name, predicted, experiment.get("predicted_interval") or (None, None))]
        if kind == "stub" and experiment.get("component") == blamed:
            ceiling = verdict.get("ceiling") or {}
            ends = ceiling.get("low"), ceiling.get("high")
            said.append((_VERDICT, f"verdict of `run`: {verdict['pattern']}, {blamed}", verdict["headroom"], ends))
        for row_kind, row_name, value, (low, high) in said:
            yield Row(
                program=program,
                name=row_name,
                kind=row_kind,
                measured=experiment["ratio"],
                low=experiment["ci95"][0],
                high=experiment["ci95"][1],
                predicted=value,
                conclusive=experiment.get("conclusive", True),
                machine=machine,
                version=version,
                predicted_low=low,
                predicted_high=high,
            )


def speedups(rows: Sequence[Row]) -> list[Row]:
    """What `what-if` was asked about, delays left out."""
    return [row for row in rows if row.kind not in (_DELAY, _VERDICT)]


def line(row: Row) -> str:
    """One line for the terminal."""
    mark = "–" if row.error is None else "✓" if row.error <= NEAR else "✗"
    ends = f"({number(row.low)} to {number(row.high)})"
    return f"{mark}  {row.program:24} {row.name:48} {number(row.measured):>7} {ends:20} {number(row.predicted):>7}"


def summary(rows: Sequence[Row]) -> str:
    """The figures of the goal."""
    verdicts, delays = ([row for row in rows if row.kind == kind] for kind in (_VERDICT, _DELAY))
    return f"what-if: {told(speedups(rows))}; verdict of `run`: {told(verdicts)}; delays: {told(delays)}"


def told(rows: Sequence[Row]) -> str:
    """How many were predicted, the median error of these, and the share of them within 15 %."""
    errors = [row.error for row in rows if row.error is not None]
    if not errors:
        return f"none of {len(rows)} predicted"
    near = sum(error <= NEAR for error in errors)
    return (
        f"{len(errors)} of {len(rows)} predicted, median error {statistics.median(errors):.1%}, "
        f"{near} ({near / len(errors):.0%}) within {NEAR:.0%}"
    )


_GROUPS = {
    _VERDICT: "headroom of `run`'s verdict",
    "stub": "a function free",
    "cached": "the loader free",
    **dict.fromkeys(
        ("backward", "optimizer", "callbacks", "env"), "backward, optimizer, callbacks or environment free"
    ),
    "interaction": "a second one, once the first is free",
    **dict.fromkeys(_SETTINGS, "settings"),
    _DELAY: "delays",
}


def write(page: Path, text: str) -> None:
    """Replace the page, except for the section that bench/model.py measures."""
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    _, heading, section = before.partition(LOADER_SECTION)
    page.write_text(f"{text}\n{heading}{section}" if heading else text, encoding="utf-8")


def markdown(rows: Sequence[Row], held_out: Sequence[Sequence[Row]]) -> str:
    """The tables for docs/: of the zoo, and in short each sitting of programs to which nothing was fitted."""
    lines = [
        INTRODUCTION,
        f"`make predictions-bench`. **{summary(rows)}.**",
        "",
        *_sittings(rows),
        *by_kind(rows),
        "",
        "| program | experiment | measured | 95 % | predicted | error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        error = "–" if row.error is None else f"{row.error:.0%}"
        lines.append(
            f"| {row.program} | {row.name}{'' if row.conclusive else ' (inconclusive)'} | {number(row.measured)} "
            f"| {number(row.low)} to {number(row.high)} | {number(row.predicted)} | {error} |"
        )
    if held_out:
        count = len({row.program for each in held_out for row in each})
        lines += [HELD_OUT.format(count=count)]
    for each in held_out:
        lines += [f"**{summary(each)}.**", "", *_sittings(each), *by_kind(each), ""]
    return "\n".join(lines).rstrip() + "\n"


def by_kind(rows: Sequence[Row]) -> Iterator[str]:
    """A table with a line for each kind of experiment."""
    yield "| said before the experiment | experiments | predicted | median error | within 15 % | in the interval |"
    yield "| --- | --- | --- | --- | --- | --- |"
    groups: dict[str, list[Row]] = {name: [] for name in [*_GROUPS.values(), "others"]}
    for row in rows:
        groups[_GROUPS.get(row.kind, "others")].append(row)
    yield from (f"| {name} | {len(group)} | {_figures(group)} |" for name, group in groups.items() if group)


def _sittings(rows: Sequence[Row]) -> list[str]:
    return [other_sittings({f"{row.program}, {row.name}": (row.version, row.machine) for row in rows}, ("", "")), ""]


HELD_OUT = """
### Programs to which nothing was fitted

No constant of the predictions was set by these {count} programs, of `bench/heldout` and `bench/unseen` (`python
bench/predictions.py --zoo bench/heldout`). Those of `bench/unseen`, of 2026-11-30, were written last, by authors who
had not seen unstall. Sittings of versions before f0116c96 did not measure what memory costs a step later ([how far that
law is off](warm-caches.md)): where what is left of a step ran up to twice as fast once other work was gone from
between, as with b23a7865, `what-if` allowed for a fifth.
"""


INTRODUCTION = """\
# Accuracy of the predictions

How close a prediction comes to what an experiment then measures.

## Experiments of `unstall simplify`

Every program of the zoo runs in its slow variant, once under `unstall run` and once under `unstall simplify`, which
picks its experiments within a minute. Two figures are on the screen before any experiment:

- the **headroom** of the verdict of `unstall run`, compared with the experiment that frees the blamed function;
- what **`unstall what-if`** predicts from the recorded run alone. `unstall simplify` prints the same figure in its
  `predicted` column. It prints none where a recording cannot tell: a module without `forward` (its backward goes with
  it), library callbacks, the network, a single rank, a late rank.

The error is that of the predicted speed-up, relative to the measured one. Inconclusive experiments count too, so part
of the error is the experiments' own noise. Delays are counted separately. How much faster the rest of a step runs on
warm caches ([what-if](what-if.md)) was fitted to these programs, so `what-if` is a little better here than elsewhere.
So was the width of its intervals where a component takes another time, to hold nine of ten; rows of before 2026-11-29
were kept without their interval, and are counted by the least that it can be. Rows of versions
before f0116c96 are of a law that did not know what memory costs a step later.
"""


def _figures(rows: Sequence[Row]) -> str:
    errors = [row.error for row in rows if row.error is not None]
    if not errors:
        return "0 | – | – | –"
    near = sum(error <= NEAR for error in errors) / len(errors)
    held = [row.holds for row in rows if row.holds is not None]
    share = f"{sum(held)} of {len(held)}" if held else "–"
    return f"{len(errors)} | {statistics.median(errors):.1%} | {near:.0%} | {share}"


if __name__ == "__main__":
    sys.exit(main())
