"""What recording costs: wall time of the same steps with and without, interleaved, as ratios.

    make overhead                                    all of it, and the table in docs/overhead.md
    python bench/overhead.py --rounds 3 --quick
    python bench/overhead.py --rows rows.json        keep each row there, and go on after the last of this version
    python bench/overhead.py --rows rows.json --only env     measure the rows with this word anew, leave the others

Recording is measured in one process that switches it on and off (switched.py): two processes that run the same loop
differ by several percent in where their memory lies. Whole runs, stack samples and early looks and all, are measured
in fresh processes, A B B A, so that what the machine does meanwhile hits both alike; wall and CPU time.
A ratio is the median over the blocks or rounds; its 95 % interval is that of the median, by bootstrap.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
from kept_rows import keep, rows_in
from machine import describe, other_sittings, version

from unstall.child import fallback, recording

HERE = Path(__file__).resolve().parent
LOOP = [str(HERE / "loop.py")]
SWITCHED = str(HERE / "switched.py")
DEMO = [str(HERE.parent / "examples/hotdog/train.py"), "--epochs", "1"]
PYTHON = [sys.executable]
UNSTALL = [sys.executable, "-m", "unstall", "run"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
GOAL = "≤ 1.01"
SWITCHED_ROWS = (
    ("steps of 1 ms", ("--block", "10", "--blocks", "2400"), GOAL),
    ("steps over 20 ms", ("--hidden", "2600", "--block", "1", "--blocks", "1200"), GOAL),
    ("steps of 1 ms, 2 loader workers", ("--workers", "2", "--block", "10", "--blocks", "1200"), GOAL),
    ("steps of 1 ms, 8 loader workers", ("--workers", "8", "--block", "10", "--blocks", "1200"), GOAL),
    ("a model of 2,000 modules", ("--kind", "modules", "--block", "1", "--blocks", "800"), GOAL),
    ("environment steps of 10 µs", ("--kind", "env", "--block", "10", "--blocks", "2400"), GOAL),
)
"""What, the words for switched.py, and the goal."""
WHOLE_ROWS = (
    ("steps of 1 ms", [*PYTHON, *LOOP], 6000, GOAL),
    ("steps over 20 ms", [*PYTHON, *LOOP, "--hidden", "2600"], 300, GOAL),
    ("steps of 1 ms, 2 loader workers", [*PYTHON, *LOOP, "--workers", "2"], 6000, GOAL),
    ("steps of 1 ms, 8 loader workers", [*PYTHON, *LOOP, "--workers", "8"], 6000, GOAL),
    ("4 ranks", [*TORCHRUN, *LOOP], 1000, GOAL),
    ("a model of 2,000 modules", [*PYTHON, *LOOP, "--kind", "modules"], 150, GOAL),
    ("environment steps of 10 µs", [*PYTHON, *LOOP, "--kind", "env"], 6000, GOAL),
)
"""What, the command of a program that says its own seconds, how many steps, and the goal."""
LONG_ROWS = (("a minute, steps of 1 ms, 2 loader workers", [*PYTHON, *LOOP, "--workers", "2"], 60_000, GOAL),)
"""The same of runs as long as a short training: sampling is over long before their end."""
Figures = tuple[str, str]
"""The ratios of wall and CPU time, or another figure and nothing."""
PAIR = "a = clock(); b = clock()"
_LEAST_STEPS = 300  # in a stretch between two windows, or in one: an epoch boundary is no window


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    wall: str
    cpu: str
    goal: str
    version: str
    machine: str


@dataclass
class Sheet:
    """The rows, each printed and kept as soon as it is measured; those of an earlier sitting of this version stay."""

    path: Path | None
    only: str = ""
    """Measure anew what has this word in its name; rows of any version stay."""
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sitting = (version("src"), describe())
        rows = rows_in(self.path, Row)
        self.rows = [row for row in rows if self.only or row.version == self.sitting[0]]

    def add(self, what: str, measure: Callable[[], Figures], goal: str = "") -> None:
        """Measure a row, unless it is there."""
        place = next((place for place, row in enumerate(self.rows) if row.what == what), len(self.rows))
        if self.only not in what or (place < len(self.rows) and not self.only):
            return
        row = Row(what, *measure(), goal, *self.sitting)
        self.rows[place : place + 1] = [row]
        print(f"{what:66} {row.wall:34} {row.cpu:34} {goal}", flush=True)
        keep(self.path, self.rows)


def main() -> int:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--quick", action="store_true", help="leave out whole runs")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="leave out the other profilers")
    parser.add_argument("--only", default="", metavar="WORD", help="measure the rows with this word in their name anew")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keep the rows there as JSON, and go on with them")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    sheet = Sheet(options.rows, options.only)
    few = max(2, options.rounds // 3)

    for what, how, goal in SWITCHED_ROWS:
        sheet.add(f"recording, {what}", partial(switched, *how), goal)
    sheet.add("recording, steps of 1 ms, without the extension in C", in_python)
    sheet.add("steps of 1 ms while stacks are sampled, over those between", lambda: (sampled(), ""))
    if not options.quick:
        for rows, rounds in ((WHOLE_ROWS, options.rounds), (LONG_ROWS, few)):
            for what, command, steps, goal in rows:
                words = [*command, "--steps", str(steps)]
                sheet.add(f"whole run, {what}", partial(ratio, words, watched(words), rounds), goal)
        sheet.add("whole run, the demo", partial(ratio, [*PYTHON, *DEMO], watched([*PYTHON, *DEMO]), few), GOAL)
    if options.peers:
        plain = [*PYTHON, *LOOP, "--steps", str(options.steps)]
        for how, peer in peers(options.steps).items():
            sheet.add(f"whole run, steps of 1 ms, {how}", partial(ratio, plain, peer, few))
    for what, measure, goal in FIGURES:
        sheet.add(what, lambda measure=measure: (measure(), ""), goal)  # type: ignore[misc]
    if options.write:
        options.write.write_text(markdown(sheet, options.rounds), encoding="utf-8")
    return 0


def watched(command: list[str]) -> list[str]:
    """The same command under `unstall run`."""
    return [*UNSTALL, *command[1:]]


def peers(steps: int) -> dict[str, list[str]]:
    """The command of each other profiler, those that are installed."""
    loop = [*LOOP, "--steps", str(steps)]
    found = {how: [*PYTHON, *loop, "--how", how] for how in ("torch-profiler", "cprofile")}
    if importlib.util.find_spec("traceml_ai"):
        script, *arguments = loop
        traceml = str(Path(sys.executable).with_name("traceml"))
        found["traceml"] = [traceml, "run", script, "--args", *arguments, "--how", "traceml"]
    return found


def output_of(command: Sequence[str], pattern: str, environment: dict[str, str] | None = None) -> str:
    """What a program prints after `pattern`, which has one group."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env=environment)
    found = re.search(pattern, result.stdout)
    if not found:
        raise SystemExit(f"{' '.join(command)} said nothing:\n{result.stdout}\n{result.stderr}")
    return found[1]


@contextmanager
def without_extensions() -> Iterator[dict[str, str]]:
    """The environment in which unstall is as an install without a compiler leaves it: recording is done in Python."""
    with tempfile.TemporaryDirectory() as folder:
        installed = Path(recording.__file__).parents[1]
        shutil.copytree(installed, Path(folder, installed.name), ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        yield {**os.environ, "PYTHONPATH": folder}


def switched(*how: str, env: dict[str, str] | None = None) -> Figures:
    """On over off, wall and CPU time of the main process: a value for each block of off on on off."""
    printed = output_of([*UNSTALL, "--no-sampling", SWITCHED, *how], r"(wall=[0-9.,]+\ncpu=[0-9.,]+)", env)
    wall, cpu = (of_blocks(line.partition("=")[2]) for line in printed.splitlines())
    return wall, cpu


def in_python() -> Figures:
    """The same of the recorder that takes its place where there is no compiler."""
    with without_extensions() as environment:
        return switched(*SWITCHED_ROWS[0][1], env=environment)


def of_blocks(printed: str) -> str:
    """The ratio on over off of seconds that were printed off on on off, with commas between."""
    blocks = np.array([float(seconds) for seconds in printed.split(",")]).reshape(-1, 4)
    return median_and_interval(np.sqrt(blocks[:, 1] * blocks[:, 2] / (blocks[:, 0] * blocks[:, 3])))


def sampled() -> str:
    """Steps inside the windows of stack samples over those before and after, a value for each window.

    The windows come once a run, one second in two until the shares are known: a dozen at most.
    """
    from unstall.benchmark import archive

    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "UNSTALL_STATE": folder}
        subprocess.run([*UNSTALL, *LOOP, "--steps", "28000"], cwd=folder, env=own, capture_output=True, check=True)
        (path,) = Path(folder).glob(f"runs/*/{archive.FILE_NAME}")
        steps = archive.read(path).steps
    turns = np.flatnonzero(np.diff(steps.measured)) + 1
    stretches = list(zip([0, *turns], [*turns, len(steps)], strict=True))
    mean = [steps.durations[first:end].mean() for first, end in stretches]
    long = [end - first > _LEAST_STEPS for first, end in stretches]
    inside = [
        mean[i] / np.sqrt(mean[i - 1] * mean[i + 1])
        for i in range(1, len(mean) - 1)
        if not steps.measured[stretches[i][0]] and all(long[i - 1 : i + 2])
    ]
    return median_and_interval(np.array(inside))


def seconds(command: Sequence[str]) -> np.ndarray:
    """(wall seconds of the steps, as the program itself says; CPU seconds of the whole command and its children)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = float(output_of(command, r"(?:seconds=|epoch 0: )([0-9.]+)"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime])


def ratio(plain: Sequence[str], watched: Sequence[str], rounds: int) -> Figures:
    """Watched over plain, wall and CPU time: a value for each round of A B B A."""
    ratios = []
    for _ in range(rounds):
        a1, b1, b2, a2 = seconds(plain), seconds(watched), seconds(watched), seconds(plain)
        ratios.append((b1 + b2) / (a1 + a2))
    wall, cpu = np.array(ratios).T
    return median_and_interval(wall), median_and_interval(cpu)


def median_and_interval(values: np.ndarray) -> str:
    """The median and its 95 % interval; with few values, their range."""
    if len(values) < 6:
        low, high = values.min(), values.max()
    else:
        again = np.random.default_rng(0).choice(values, (4000, len(values)))
        low, high = np.percentile(np.median(again, axis=1), [2.5, 97.5])
    return f"{np.median(values):.4f}  ({low:.4f} – {high:.4f})"


def span_in_pairs(recorder: ModuleType) -> str:
    """Cost of a recorded span over that of a bare pair of clock calls, best of interleaved repeats."""
    with tempfile.TemporaryDirectory() as folder:
        recorder.open(os.path.join(folder, "rec.bin"))
        names = {"span": recorder.span, "clock": time.perf_counter_ns}
        pairs, spans = [], []
        for _ in range(40):
            pairs.append(timeit.timeit(PAIR, globals=names, number=50_000))
            spans.append(timeit.timeit('with span("x"): pass', globals=names, number=50_000))
        recorder.close()
    each = 1e9 / 50_000
    return f"{min(spans) / min(pairs):.2f}  ({min(spans) * each:.0f} ns, pair {min(pairs) * each:.0f} ns)"


def best_of(runs: int, measure: Callable[[], float]) -> float:
    """The smallest of several: what the machine adds is never less than nothing."""
    return min(measure() for _ in range(runs))


def run_s(command: Sequence[str]) -> float:
    """Wall time of a command."""
    with tempfile.TemporaryDirectory() as folder:
        return timeit.timeit(lambda: subprocess.run(command, cwd=folder, capture_output=True), number=1)


def import_ms() -> float:
    """Of `import unstall` and its names, over an interpreter that imports nothing."""
    bare = best_of(15, lambda: run_s([*PYTHON, "-c", "pass"]))
    full = best_of(15, lambda: run_s([*PYTHON, "-c", "import unstall; unstall.span, unstall.steps"]))
    return 1e3 * (full - bare)


def start_up_s() -> float:
    """`unstall run` of a program that does nothing, over that program alone."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "nothing.py"
        script.write_text("pass\n")
        bare = best_of(7, lambda: run_s([*PYTHON, str(script)]))
        full = best_of(7, lambda: run_s([*UNSTALL, str(script)]))
    return full - bare


def memory_mb() -> float:
    """Peak resident memory after ten million spans, less that after ten."""

    def peak(count: int) -> float:
        code = (
            "import resource, sys, tempfile; from unstall.child.recording import native;"
            "folder = tempfile.TemporaryDirectory(); native.open(folder.name + '/rec.bin'); span = native.span\n"
            f"for _ in range({count}):\n"
            "    with span('x'): pass\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        return int(subprocess.run([*PYTHON, "-c", code], capture_output=True, text=True).stdout) / 1024

    return peak(10_000_000) - peak(10)


FIGURES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("a span, in pairs of perf_counter_ns calls", lambda: span_in_pairs(recording.native), "≤ 2"),
    ("a span without the extension in C, in the same pairs", lambda: span_in_pairs(fallback), ""),
    ("import unstall", lambda: f"{import_ms():.1f} ms", "≤ 60 ms"),
    ("start-up of unstall run, before and after the program", lambda: f"{start_up_s():.2f} s", "≤ 0.7 s"),
    ("memory of a program of 10 million spans, above one of none", lambda: f"{memory_mb():.1f} MB", "≤ 64 MB"),
)
"""What is no ratio of times, how it is measured, and the goal."""


def markdown(sheet: Sheet, rounds: int) -> str:
    """The table for docs/."""
    rest = other_sittings({row.what: (row.version, row.machine) for row in sheet.rows}, ("", ""))
    lines = [
        "# Overhead",
        "",
        "What it costs to run a program under `unstall`: the time of its steps, divided by that of the same steps",
        "without `unstall`. 1.01 means one percent more. `make overhead`.",
        *(["", rest] if rest else []),
        "",
        "| what | wall time | CPU time | goal | |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {row.what} | {row.wall} | {row.cpu} | {row.goal} | {verdict(row)} |" for row in sheet.rows),
        "",
        "Each figure is a median, with its 95 % interval; where there were fewer than six rounds, with their range.",
        "A goal is *met* where the whole interval of the wall time is below it, *missed* where the whole interval is",
        "above, and *open* in between: too noisy to tell.",
        "",
        "- **Recording** is measured in one process that switches the recorder on and off; CPU time is that of the",
        "  main process. These are the sharper figures.",
        "- **Whole runs** are fresh processes, with and without `unstall` in the order A B B A,",
        f"  at most {rounds} rounds ({max(2, rounds // 3)} for a minute's, the demo and other profilers). Wall time",
        "  is that of the program's own loop; CPU time is all that the command and its children used, with the start",
        "  of `unstall`, sampler and report.",
        "- These whole runs last some six seconds, of which stacks are sampled for about a half; with loader workers",
        "  on few cores the sampler takes theirs, so that the goal is out of reach there: a sample of a process takes",
        "  half a millisecond of a core, and it takes hundreds to name a line. A long run is sampled for a dozen",
        "  seconds in all: in *a minute* the same loop pays less, and still more than for the recording alone. Steps",
        "  that overlap a sample are not timed, unless too few others are left.",
        "- An environment step pays for two clock readings and a call through C, what *a span* costs: where that is",
        "  more than a hundredth of the step, the goal cannot be met.",
        "- A rank leaves some 2 kB for the report of [several machines](several-machines.md), however long the run;",
        "  while it runs, its recording grows by 48 bytes a span on its own node: 500 bytes for a step of ten calls.",
    ]
    return "\n".join(lines) + "\n"


def verdict(row: Row) -> str:
    """Whether an interval of wall time is on one side of its goal; empty where there is no interval or no goal."""
    bounds = re.search(r"\(([0-9.]+) – ([0-9.]+)\)", row.wall)
    if not row.goal or not bounds:
        return ""
    low, high, limit = float(bounds[1]), float(bounds[2]), float(row.goal.removeprefix("≤ "))
    return "met" if high <= limit else "missed" if low > limit else "open"


if __name__ == "__main__":
    sys.exit(main())
