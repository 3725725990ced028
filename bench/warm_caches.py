"""How much faster the rest of a step runs once a function beside the model has gone, against the law of warm caches.

    python bench/warm_caches.py                          the zoo, to which the law is fitted
    python bench/warm_caches.py --zoo bench/heldout      programs to which it is not
    python bench/warm_caches.py --only speech_mel,file_scan --write docs/warm-caches.md

Each program runs once, in one process. In turns, for seconds each, its culprit does its work, and gives its last result
again instead. What the rest of a step takes in one and the other is compared with what
``unstall.benchmark.warm_caches`` says by the step, the rest, and what a line of memory costs a step later, as the
recorder measures it. So nothing else is in the error: no samples, no simulation, no second process.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy import ROOT, ZOO, load_cases
from kept_rows import keep, rows_in
from machine import describe, other_sittings, version
from torch.optim.optimizer import register_optimizer_step_post_hook

from unstall.benchmark import thresholds
from unstall.benchmark.reader import read_process
from unstall.benchmark.warm_caches import share_left
from unstall.child import _recorder
from unstall.records.vocabulary import Tick

BESIDE_THE_MODEL = (
    *("file_scan", "collate_pad", "csv_batches", "speech_mel", "sqlite_scan", "text_stream", "sample_index"),
    *("cart_physics", "grid_env", "gc_each_step", "log_each_step", "metrics_each_step", "tensorboard_histograms"),
    *("point_samples", "zip_archive", "jsonl_scan", "replay_rows", "ragged_collate"),
)
"""Programs whose culprit runs in the main thread in each step, is found by its name when it is called, and has no say
in what else a step does: lidar_course is left out, as how long an episode lasts depends on what its culprit sees."""
ROUNDS = 3
WORKING_S, FREED_S = 4.0, 2.0
WARMS_TRIED = [hundredths / 100 for hundredths in range(41)]
LINES_TRIED = [quarters * 0.25e6 for quarters in range(21)]
SETTLING = 8
"""Steps after each change that do not count."""


@dataclass
class Row:
    """One program: medians over the steps, in seconds."""

    program: str
    step_s: float
    rest_s: float
    freed_s: float
    """What the rest takes while the culprit does nothing."""
    refetch_s: float | None
    machine: str = ""
    version: str = ""

    @property
    def share(self) -> float:
        """Of its time that the rest still takes."""
        return self.freed_s / self.rest_s

    @property
    def law(self) -> float:
        """The same by the law."""
        return share_left(self.step_s, self.rest_s, self.refetch_s)

    @property
    def off(self) -> float:
        """How far the law is off, in logarithms."""
        return abs(math.log(self.share / self.law))


def main() -> int:
    """Measure the cases, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, default=ZOO)
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows: a bench in several sittings")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    parser.add_argument("--play", nargs=2, metavar=("PROGRAM", "FUNCTION"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        play(Path(options.play[0]), options.play[1])
        return 0
    wanted = BESIDE_THE_MODEL if options.only is None else options.only.split(",")
    rows = {row.program: row for row in rows_in(options.rows, Row)}
    for case in load_cases(options.zoo.resolve()):
        if case.name in wanted and (row := measured(case, options.zoo.resolve())):
            rows[case.name] = row
            print(line(row), flush=True)
            keep(options.rows, rows.values())
    if options.write:
        options.write.write_text(markdown(list(rows.values())), encoding="utf-8")
    print(summary(list(rows.values())))
    return 0


def measured(case: Any, zoo: Path) -> Row | None:
    """The row of one program; None where its culprit was never reached."""
    words = [sys.executable, str(Path(__file__).resolve()), "--play", str(zoo / case.script), case.culprit]
    shared = os.pathsep.join([str(zoo), str(ZOO)])
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            words, cwd=folder, env={**os.environ, "PYTHONPATH": shared}, capture_output=True, text=True, timeout=300
        )
    found = result.stdout.splitlines()[-1:]
    if not found or not found[0].startswith("{"):
        print(f"{case.name}: {result.stderr[-500:]}", file=sys.stderr)
        return None
    return Row(case.name, **json.loads(found[0]), machine=describe(), version=version("src", "bench", "tests/zoo"))


# ------------------------------------------------------------ in the program's process


class Culprit:
    """The function that works, or gives its last result again."""

    def __init__(self) -> None:
        self.is_freed = False
        self.inside_s = 0.0
        self._last: list[Any] = []
        self._depth = 0

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """In its place: timed while it works."""

        def either(*args: Any, **kwargs: Any) -> Any:
            if self._depth or (self.is_freed and self._last):
                return function(*args, **kwargs) if self._depth else self._last[0]
            self._depth, began = 1, time.perf_counter()
            try:
                self._last = [function(*args, **kwargs)]
            finally:
                self.inside_s += time.perf_counter() - began
                self._depth = 0
            return self._last[0]

        return either

    def put_into(self, program: dict[str, Any], name: str) -> None:
        """Where the program looks for it: a module's function, a class's method, what a loader collates with."""
        owner, _, method = name.rpartition(".")
        if owner:
            setattr(program[owner], method, self.wrapped(getattr(program[owner], method)))
            return
        original, program[name] = program[name], self.wrapped(program[name])
        for found in gc.get_objects():
            if getattr(type(found), "__name__", "") == "DataLoader" and found.collate_fn is original:
                found.collate_fn = program[name]


class Turns:
    """Working and freed in turns; the steps of each."""

    def __init__(self, culprit: Culprit, folder: Path):
        self.culprit, self.folder = culprit, folder
        self.rests: dict[bool, list[float]] = {False: [], True: []}
        self.steps: list[float] = []
        self.refetches: list[float] = []
        self.turn, self.since, self.seen = -1, 0.0, 0
        self.last = time.perf_counter()
        self.next_turn()

    def next_turn(self) -> None:
        looked = read_process(self.folder, 1).refetch_s if self.turn >= 0 else None
        if looked is not None and not self.culprit.is_freed:
            self.refetches.append(looked)
        self.turn += 1
        self.culprit.is_freed = bool(self.turn % 2)
        _recorder.open(str(self.folder / "rec-1.bin"))
        self.since, self.seen = time.perf_counter(), 0

    def step(self, *_: Any) -> None:
        """After each step of the optimizer."""
        now = time.perf_counter()
        self.seen += 1
        if self.seen > SETTLING:
            self.rests[self.culprit.is_freed].append(now - self.last - self.culprit.inside_s)
            if not self.culprit.is_freed:
                self.steps.append(now - self.last)
        if now - self.since > (FREED_S if self.culprit.is_freed else WORKING_S):
            if self.turn == 2 * ROUNDS - 1:
                raise SystemExit
            self.next_turn()
        _recorder.tick(int(Tick.OPTIMIZER), 1, None)
        self.culprit.inside_s = 0.0
        self.last = time.perf_counter()

    def report(self) -> None:
        """The medians, as JSON, last of all."""
        if all(self.rests.values()) and self.steps:
            figures = {
                "step_s": statistics.median(self.steps),
                "rest_s": statistics.median(self.rests[False]),
                "freed_s": statistics.median(self.rests[True]),
                "refetch_s": statistics.median(self.refetches) if self.refetches else None,
            }
            print(json.dumps(figures), flush=True)


def play(program: Path, function: str) -> None:
    """Run the program; from the first step of an optimizer on, its culprit works in turns."""
    module = types.ModuleType("__main__")
    module.__file__ = str(program)
    sys.modules["__main__"], sys.argv = module, [str(program), "--variant", "slow", "--seconds", "600"]
    turns: list[Turns] = []

    def stepped(*_: Any) -> None:
        if turns:
            turns[0].step()
            return
        culprit = Culprit()
        culprit.put_into(module.__dict__, function)
        turns.append(Turns(culprit, Path.cwd()))
        atexit.register(turns[0].report)

    register_optimizer_step_post_hook(stepped)
    exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), module.__dict__)


# ------------------------------------------------------------ the table


def line(row: Row) -> str:
    """One line for the terminal."""
    cost = "–" if row.refetch_s is None else f"{row.refetch_s * 1e9:.0f} ns"
    times = f"{row.step_s * 1e3:7.1f} ms {row.rest_s * 1e3:6.2f} ms {row.freed_s * 1e3:6.2f} ms"
    return f"{row.program:20} {times} {cost:>7} {row.share:6.2f} {row.law:6.2f}"


def summary(rows: Sequence[Row]) -> str:
    """How far the law is off, and how far it would be to take the rest as it was."""
    if not rows:
        return "no program was measured"
    off = math.expm1(statistics.median(row.off for row in rows))
    as_before = math.expm1(statistics.median(abs(math.log(row.share)) for row in rows))
    return f"{len(rows)} programs: the law is off by {off:.1%} in the median, a rest as it was by {as_before:.1%}"


def best_fit(rows: Sequence[Row]) -> tuple[float, float]:
    """``thresholds.WARMS`` and ``LINES_PER_S`` that leave the least mean error over these rows, on a grid."""
    landed = thresholds.WARMS, thresholds.LINES_PER_S

    def error(constants: tuple[float, float]) -> float:
        thresholds.WARMS, thresholds.LINES_PER_S = constants
        return statistics.fmean(row.off for row in rows)

    try:
        return min(itertools.product(WARMS_TRIED, LINES_TRIED), key=error)
    finally:
        thresholds.WARMS, thresholds.LINES_PER_S = landed


def refitted(rows: Sequence[Row]) -> str:
    """What these rows alone would make of the law, in a sentence for the page."""
    warms, lines_per_s = best_fit(rows)
    return (
        f"With {warms:.2f} for each e-fold and {lines_per_s / 1e6:.2f} million lines a second, the law would fit best\n"
        "the programs to which it was fitted, as they ran here. Landed, of runs in three states of the machine, are\n"
        f"{thresholds.WARMS:.2f} and {thresholds.LINES_PER_S / 1e6:.2f}."
    )


def markdown(rows: Sequence[Row]) -> str:
    """The page: the programs to which the law was fitted, then the others."""
    programs = {path.stem for path in ZOO.glob("*.py")}
    fitted = [row for row in rows if row.program in programs]
    others = [row for row in rows if row.program not in programs]
    lines = [INTRODUCTION]
    for title, part in (("The law was fitted to these", fitted), ("It was not fitted to these", others)):
        if part:
            sitting = other_sittings({row.program: (row.version, row.machine) for row in part}, ("", ""))
            lines += [f"## {title}", "", f"**{summary(part)}.** {sitting}", "", *table(part), ""]
    if fitted:
        lines += ["## Fitted anew", "", refitted(fitted)]
    return "\n".join(lines).rstrip() + "\n"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """One line a program."""
    yield "| program | step | rest | rest, once the culprit is gone | a line of memory | share measured | by the law |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        cost = "–" if row.refetch_s is None else f"{row.refetch_s * 1e9:.0f} ns"
        times = " | ".join(f"{seconds * 1e3:.2f} ms" for seconds in (row.step_s, row.rest_s, row.freed_s))
        yield f"| {row.program} | {times} | {cost} | {row.share:.2f} | {row.law:.2f} |"


INTRODUCTION = """\
# Warm caches: what is left of a step runs faster

The rest of a step is compared with itself, while a function beside the model does its work, and while it gives its last
result again instead, in turns, in one process. The law says the same by the step, the rest, and what a line of memory
costs a step after it was last touched, which the recorder measures
([how `what-if` uses it](what-if.md#how-it-is-predicted)).

`make warm-caches-bench`.
"""


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    sys.exit(main())
