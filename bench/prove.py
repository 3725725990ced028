"""How often `unstall prove` is fooled, and how often it wrongs an honest change: bench/hacks, family by family.

    make prove-bench                                    all of it, an hour or two
    python bench/prove.py --only "fewer steps" --rows rows.json      one family; rows are added to
    python bench/prove.py --minutes 60 --rows rows.json              go on for an hour, then print the tables
    taskset -c 0 python bench/prove.py --part 1/2 --rows 1.json      one half, beside the other on another core
    python bench/prove.py --minutes 0 --rows all.json --rows 1.json --rows 2.json      put them together

A false accept is a bad change that is proven. A false reject is an honest one that is called different or refused; one
that is called not faster or inconclusive is counted apart, as that is a matter of the machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hacks.corpus import Change, corpus
from hacks.public import commands
from kept_rows import keep, rows_in
from machine import describe, other_sittings, version
from marked import put_between_marks
from scipy.stats import beta

REJECTED = ("different", "refused")
KINDS = tuple((honest, held_out) for held_out in (False, True) for honest in (False, True))
"""Of changes: (honest, held out)."""
_LIMIT_S = 1800


@dataclass(frozen=True)
class Row:
    """What became of one change."""

    key: str
    family: str
    honest: bool
    held_out: bool
    verdict: str
    reason: str
    minutes: float
    version: str
    machine: str

    @property
    def wrong(self) -> bool:
        """Whether the verdict is a false one."""
        return self.verdict in REJECTED if self.honest else self.verdict == "proven"


def sitting() -> tuple[str, str]:
    """Version and machine of the rows that are made now."""
    return version("src", "bench/hacks"), describe()


def judge(change: Change, budget: str) -> Row:
    """Let `unstall prove` judge a change, in a folder of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="prove-bench-") as scratch:
        folder, report = Path(scratch, "program"), Path(scratch, "report.json")
        folder.mkdir()
        patch = change.lay_out(folder)
        change.prepare(folder)
        words = ["--patch", str(patch), "--budget", budget, "--json", str(report)]
        command = [sys.executable, "-m", "unstall", "prove", *words, *change.command]
        # Where nothing that is printed is kept back, whatever the programs do, lines cannot be lost with a process.
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S, env=plain)
        try:
            proof = json.loads(report.read_text())["proof"]
        except OSError:
            proof = {"verdict": "failed", "reason": done.stderr.strip()[-200:]}
    minutes = round((time.monotonic() - began) / 60, 2)
    return Row(change.key, change.family, change.honest, change.held_out, proof["verdict"], proof["reason"], minutes,
               *sitting())  # fmt: skip


def table(rows: Sequence[Row], *, honest: bool, held_out: bool) -> Iterator[str]:
    """A Markdown table of the bad changes or of the honest ones, a family a row; none where there are none."""
    chosen = [row for row in rows if row.honest == honest and row.held_out == held_out]
    if not chosen:
        return
    kind, error = ("honest", "false rejects") if honest else ("bad", "false accepts")
    yield f"{kind.capitalize()} changes{', held out' * held_out}:"
    yield ""
    yield f"| {kind} family | changes | {error} | verdicts |"
    yield "| --- | ---: | ---: | --- |"
    for family in dict.fromkeys(row.family for row in chosen):
        of_family = [row for row in chosen if row.family == family]
        verdicts = ", ".join(f"{count} {word}" for word, count in Counter(row.verdict for row in of_family).items())
        yield f"| {family} | {len(of_family)} | {sum(row.wrong for row in of_family)} | {verdicts} |"
    wrong, count = sum(row.wrong for row in chosen), len(chosen)
    yield f"| all | {count} | {wrong} | at most {bound(wrong, count):.0%} with 95 % confidence |"
    yield ""


def totals(rows: Sequence[Row]) -> Iterator[str]:
    """A Markdown table of all of them: how many a judge got wrong, with the upper bound."""
    yield "| changes | judged | wrong | at most, with 95 % confidence | proven | different or refused | undecided |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    for honest, held_out in KINDS:
        chosen = [row for row in rows if row.honest == honest and row.held_out == held_out]
        if not chosen:
            continue
        wrong = sum(row.wrong for row in chosen)
        error = f"{wrong} {'rejected' if honest else 'proven'}"
        proven = sum(row.verdict == "proven" for row in chosen)
        rejected = sum(row.verdict in REJECTED for row in chosen)
        kind = f"{'honest' if honest else 'bad'}{', held out' * held_out}"
        yield (
            f"| {kind} | {len(chosen)} | {error} | {bound(wrong, len(chosen)):.0%} | {proven} | {rejected} "
            f"| {len(chosen) - proven - rejected} |"
        )


def bound(wrong: int, count: int) -> float:
    """Clopper-Pearson: the largest rate of errors with which so few are still seen in 5 of 100 sittings."""
    return float(beta.ppf(0.95, wrong + 1, count - wrong)) if wrong < count else 1.0


def drawn(key: str) -> bytes:
    """An order that is none, and always the same: what was judged first stands for all."""
    return hashlib.blake2b(key.encode()).digest()


def write(files: Sequence[Path], rows: Sequence[Row]) -> None:
    """Keep them in the first of these files, in the drawn order."""
    keep(files[0] if files else None, sorted(rows, key=lambda row: drawn(row.key)))


def main() -> int:
    """Judge the corpus and print both tables; exit code 1 where a bad change is proven."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="FAMILY", action="append", help="these families alone")
    parser.add_argument("--budget", default="15m", help="of each proof")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no further proof after so many minutes")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every N-th change, from the K-th on")
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", action="append", default=[],
        help="keep the rows there as JSON; those in it stay, and those of the files that are given after it",
    )  # fmt: skip
    parser.add_argument("--public", type=Path, metavar="FOLDER", help="with checkouts of public programs, owner+name")
    parser.add_argument("--commands", action="store_true", help="print how to get these, and stop")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the marks in this file")
    arguments = parser.parse_args()
    if arguments.commands:
        print("\n".join(commands()))
        return 0
    kept = {row.key: row for path in arguments.rows for row in rows_in(path, Row)}
    rows = list(kept.values())
    began = time.monotonic()
    part, parts = map(int, arguments.part.split("/"))
    changes = sorted(corpus(arguments.public), key=lambda change: drawn(change.key))
    for change in changes[part - 1 :: parts]:
        if change.key in kept or (arguments.only and change.family not in arguments.only):
            continue
        if arguments.minutes is not None and time.monotonic() - began > 60 * arguments.minutes:
            break
        row = judge(change, arguments.budget)
        rows.append(row)
        print(f"{'WRONG ' if row.wrong else ''}{row.key}: {row.verdict} ({row.reason})", flush=True)
        write(arguments.rows, rows)
    write(arguments.rows, rows)
    minutes = sum(row.minutes for row in rows) / max(1, len(rows))
    lines = [line for honest, held_out in KINDS for line in table(rows, honest=honest, held_out=held_out)]
    commit, machine = here = sitting()
    rest = other_sittings({row.key: (row.version, row.machine) for row in rows}, here)
    where = f" on {machine}, version {commit}" * any((row.version, row.machine) == here for row in rows)
    judged = f"{len(rows)} of {len({row.key for row in rows}.union(change.key for change in changes))} changes judged"
    made = f"{judged}, {minutes:.1f} minutes a proof, by `make prove-bench`{where}."
    in_all = "\n".join([*totals(rows), "", made, *(["", rest] if rest else [])]) + "\n"
    print("", *lines, in_all, sep="\n")
    if arguments.write:
        put_between_marks(arguments.write, "make prove-bench", in_all)
        put_between_marks(arguments.write, "make prove-bench, by family", "\n".join(lines))
    return int(any(row.wrong and not row.honest for row in rows))


if __name__ == "__main__":
    sys.exit(main())
