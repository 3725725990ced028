"""The verdicts again, by the code as it is now, from the recordings of an earlier sitting: nothing is run.

    python bench/accuracy.py --keep FOLDER --results rows.json          first: run, and keep the recordings
    python bench/rediagnose.py FOLDER --results rows.json               then, after each change of a rule or threshold
    python bench/rediagnose.py FOLDER --results rows.json --zoo bench/heldout
    python bench/rediagnose.py FOLDER --results rows.json --into rows.json      keep the rows, for accuracy.py --replay

Truths are those of the rows. What a recording does not hold (a new figure of a new seam) needs a new sitting.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from accuracy import ZOO, earlier, load_cases, row_of, show, state_of
from accuracy_table import Row, claims, format_row, interval, summary
from kept_rows import keep

from unstall.benchmark import archive
from unstall.benchmark.launcher import Observation
from unstall.diagnose.overview import RunContext
from unstall.diagnose.summary import report


def main() -> int:
    """Diagnose what is there, and print each verdict beside the truth, then the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what `bench/accuracy.py --keep` filled")
    parser.add_argument("--results", type=Path, required=True, help="the rows of the same sitting, for their truths")
    parser.add_argument("--into", type=Path, help="keep the rows as they are now here")
    parser.add_argument("--zoo", type=Path, default=ZOO)
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--verbose", action="store_true", help="show evidence as well")
    options = parser.parse_args()
    known = earlier(options.results)
    rows = []
    for case in load_cases(options.zoo.resolve()):
        if case.name in known and (options.only is None or case.name in options.only.split(",")):
            again = diagnosed(state_of(case, options.folder))
            rows.append(with_truths(row_of(case, again), known[case.name]))
            print(format_row(rows[-1]), *map(interval, (rows[-1].ceiling, rows[-1].expected_gain)), rows[-1].free)
            if options.verbose and again:
                show(again)
    print(summary(rows), *claims(rows), sep="\n")
    if options.into:
        keep(options.into, (known | {row.name: row for row in rows}).values())
    return 0


def diagnosed(state: Path) -> dict[str, Any] | None:
    """The report of the run whose recording lies there, made anew; None where there is none."""
    found = sorted(state.glob(f"runs/*/{archive.FILE_NAME}"))
    if not found:
        return None
    kept = archive.read(found[-1])
    old = kept.report
    run = RunContext(
        id=old.run.id,
        command=old.run.command,
        started=old.run.started,
        exit_code=old.run.exit_code or 0,
        environment=old.run.environment,
        observation=Observation(began=kept.began, ended=kept.ended, points=kept.resources, machine=kept.machine),
        notes=list(old.run.notes),
    )
    made: dict[str, Any] = msgspec.to_builtins(report(run, kept.measurement, None))
    return made


def with_truths(row: Row, known: Row) -> Row:
    """The row with what was measured beside the run."""
    same_culprit = row.named.rpartition(".")[2] == known.named.rpartition(".")[2]
    return replace(row, speedup=known.speedup, free=known.free if same_culprit else None)


if __name__ == "__main__":
    sys.exit(main())
