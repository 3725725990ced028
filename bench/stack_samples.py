"""How much of a program the stack samples show a function to be, against a sampler that stops the program to read it.

    python bench/stack_samples.py --write docs/stack-samples.md
    python bench/stack_samples.py --only click_ranking,text_stream

Each program runs once. In turns, py-spy stops it for each stack, which loses none and slows it down, and reads it as it
goes on, as ``unstall`` does. Of the second kind some stacks cannot be read, and some have lost their outer frames
(``unstall.benchmark.cut_stacks``): the share of the function among those that could be read, among these with their
outer frames, and among all.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy import ROOT, ZOO, command, load_cases, with_shared
from kept_rows import keep, rows_in
from machine import describe, other_sittings, version

from unstall.benchmark.cut_stacks import with_whole_stacks
from unstall.benchmark.sampler import find_py_spy
from unstall.benchmark.stacks import lost_samples, parse_raw, relevant
from unstall.benchmark.thresholds import SAMPLE_RATE
from unstall.records.observations import Observation, StackSample

FOLDERS = (ZOO, ROOT / "bench" / "heldout", ROOT / "bench" / "unseen")
PROGRAMS = (
    *("text_stream", "sample_index", "feature_prep", "python_loss", "metrics_each_step", "grid_env", "ragged_collate"),
    *("click_ranking", "auc_by_user", "loan_features", "molecule_hops", "phrase_pairs", "lesion_report"),
)
"""Programs whose culprit is a function that the main thread runs, of many small calls in some and of few in others."""
ROUNDS, WINDOW_S, START_S = 3, 4, 8.0


@dataclass
class Row:
    """One program: shares of the main thread's stacks in which the function is."""

    program: str
    function: str
    stopped: float
    readable: float
    continued: float
    counted: float
    lost: float
    """Of all attempts to read a stack, those that failed."""
    machine: str = ""
    version: str = ""


def main() -> int:
    """Measure the cases, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of programs, with commas between")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows: a bench in several sittings")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    wanted = PROGRAMS if options.only is None else options.only.split(",")
    rows = {row.program: row for row in rows_in(options.rows, Row)}
    for folder in FOLDERS:
        for case in load_cases(folder):
            if case.name in wanted:
                rows[case.name] = measured(case, folder)
                print(line(rows[case.name]), flush=True)
                keep(options.rows, rows.values())
    if options.write:
        options.write.write_text(markdown(list(rows.values())), encoding="utf-8")
    print(summary(list(rows.values())))
    return 0


def measured(case: Any, folder: Path) -> Row:
    """The row of one program."""
    words = [sys.executable, *command(case, folder, "slow", START_S + 2.5 * ROUNDS * WINDOW_S)]
    stopped: list[StackSample] = []
    read: list[StackSample] = []
    lost = 0
    with tempfile.TemporaryDirectory() as place:
        program = subprocess.Popen(words, cwd=place, env=with_shared(), stdout=subprocess.DEVNULL)
        try:
            time.sleep(START_S)
            for _ in range(ROUNDS):
                stopped += sampled(program.pid, Path(place))[0]
                samples, failed = sampled(program.pid, Path(place), "--nonblocking")
                read, lost = [*read, *samples], lost + failed
        finally:
            program.terminate()
            program.wait()
    continued, counted = (with_whole_stacks(Observation(0.0, samples=read, lost=each)).samples for each in (0, lost))
    shares = (share(samples, case) for samples in (stopped, read, continued, counted))
    attempts = lost + sum(sample.count for sample in read if sample.main_thread)
    found = Row(case.name, case.culprit, *shares, lost / attempts)
    found.machine, found.version = describe(), version("src", "bench", "tests/zoo")
    return found


def sampled(pid: int, folder: Path, *how: str) -> tuple[list[StackSample], int]:
    """The stacks of a window, and how many could not be read."""
    output = folder / "stacks.txt"
    words = [
        str(find_py_spy()),
        "record",
        "--pid",
        str(pid),
        "--subprocesses",
        "--threads",
        "--idle",
        "--full-filenames",
        *how,
    ]
    more = ["--format", "raw", "--rate", str(SAMPLE_RATE), "--duration", str(WINDOW_S), "--output", str(output)]
    said = subprocess.run([*words, *more], capture_output=True, text=True, check=True).stdout
    return relevant(parse_raw(output.read_text(encoding="utf-8"))), lost_samples(said)


def share(samples: Iterable[StackSample], case: Any) -> float:
    """Of the main thread's stacks, those in which the program's culprit is."""
    main = [sample for sample in samples if sample.main_thread]
    name = case.culprit.rpartition(".")[2]
    inside = sum(
        sample.count
        for sample in main
        if any(
            frame.function.rpartition(".")[2] == name and Path(frame.file).name == case.script
            for frame in sample.frames
        )
    )
    return inside / sum(sample.count for sample in main)


def line(row: Row) -> str:
    """One line for the terminal."""
    shares = "  ".join(f"{each:4.0%}" for each in (row.stopped, row.readable, row.continued, row.counted))
    return f"{row.program:20} {shares}   lost {row.lost:.0%}"


def summary(rows: Sequence[Row]) -> str:
    """How far each way to count is off, in points."""
    if not rows:
        return "no program was measured"
    ways = {"readable": "the readable stacks", "continued": "these with their outer frames", "counted": "all of them"}
    off = {name: [100 * abs(getattr(row, name) - row.stopped) for row in rows] for name in ways}
    said = "; ".join(
        f"by {words}, {statistics.mean(off[name]):.1f} points ({max(off[name]):.0f} at most)"
        for name, words in ways.items()
    )
    return f"{len(rows)} programs: how far off the function's share is in the mean: {said}"


def markdown(rows: Sequence[Row]) -> str:
    """The page."""
    sitting = other_sittings({row.program: (row.version, row.machine) for row in rows}, ("", ""))
    lines = [INTRODUCTION, f"**{summary(rows)}.** {sitting}", "", *HEAD]
    for row in rows:
        shares = " | ".join(f"{each:.0%}" for each in (row.stopped, row.readable, row.continued, row.counted, row.lost))
        lines.append(f"| {row.program} | `{row.function}` | {shares} |")
    return "\n".join(lines) + "\n"


HEAD = (
    "| program | function | by a sampler that stops it | readable stacks | with outer frames | with lost ones | lost |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)
INTRODUCTION = """\
# Stack samples: what is lost where Python is busy

How much of the main thread's time a function is, by a sampler that stops the program for each stack, and by one that
reads it as it goes on, in turns in one run. The second kind is what `unstall` uses: it does not hold the program up.
Some of its stacks cannot be read, as the program changes them meanwhile, and some have lost their outer frames; both
are of code that calls small Python functions all the time, so that a plain count shows too little of it.
[What is done about it](how-it-works.md#stack-samples).

`make stack-samples-bench`.
"""


if __name__ == "__main__":
    sys.exit(main())
