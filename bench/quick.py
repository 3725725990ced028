"""How long `unstall optimize --quick` takes to its first kept change, on the programs of bench/heldout.

    make quick-bench                                         those of bench/heldout, and the table in docs/optimize.md
    python bench/quick.py --only lidar_course,pair_loss      any of bench/heldout and tests/zoo

The command runs as a person would type it, with its own budget of one minute; the time is that of the command, to its
end. What it keeps is measured again as bench/optimize.py does it, next to the twin that an expert wrote.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from kept_rows import keep, rows_in
from machine import other_sittings
from marked import put_between_marks
from optimize import Measuring, case
from optimize_table import EPOCHS, Row, gain_in_words, line, times

NAMES = tuple(
    path.stem
    for path in sorted(Path(__file__).with_name("heldout").glob("*.py"))
    if path.stem != "truth" and not path.stem.startswith("healthy_")
)
_GOAL_S = 60.0


def main() -> int:
    """Run the programs, print the rows, write the table where asked; exit code 1 where a kept change is no faster."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of programs, with commas between; '' for the table of --rows alone")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each run of a twin")
    parser.add_argument("--rounds", type=int, default=1, help="of two runs of each twin")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows")
    parser.add_argument("--put", type=Path, help="put the table between the marks in this file")
    options = parser.parse_args()
    rows = {row.name: row for row in rows_in(options.rows, Row)}
    for name in filter(None, options.only.split(",")) if options.only is not None else NAMES:
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = case(name, Path(folder), Measuring(("--quick",), options.seconds, options.rounds))
        print(line(rows[name]), flush=True)
        keep(options.rows, rows.values())
    if options.put:
        put_between_marks(options.put, "make quick-bench", markdown(list(rows.values())))
    return int(any(row.false_win for row in rows.values()))


def markdown(rows: list[Row]) -> str:
    """The table, and what it comes to."""
    keepers = [row for row in rows if row.kept]
    text = (
        f"`make quick-bench`, on the programs of bench/heldout: a change was kept in {len(keepers)} of {len(rows)}"
        f", within {_GOAL_S:.0f} s in {sum(row.seconds <= _GOAL_S for row in keepers)}"
    )
    if keepers:
        text += f"; there the command took {median(row.seconds for row in keepers):.0f} s in the median"
    text += f". False wins: {sum(row.false_win for row in keepers)}."
    text += f" Where samples are cached, it is of {EPOCHS} epochs that the program is faster."
    lines = [text, other_sittings({row.name: (row.version, row.machine) for row in rows}, ("", "")), ""]
    lines += ["| program | kept | results | faster | expert's | time |", "| --- | --- | --- | --- | --- | --- |"]
    for row in sorted(rows, key=lambda row: (not row.kept, row.seconds)):
        cells = [", ".join(row.kept) or "nothing", row.sameness, gain_in_words(row), times(row.expert)]
        lines.append(f"| {row.name} | {' | '.join(cells)} | {row.seconds:.0f} s |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
