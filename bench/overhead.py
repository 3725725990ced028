"""What recording costs: wall time of the same steps with and without, interleaved, as ratios.

    make overhead                                    all of it, and the table in docs/overhead.md
    python bench/overhead.py --rounds 3 --quick

The loop of 1 ms steps and a demo of slower steps run in fresh processes, A B B A, so that what the machine does
meanwhile hits both alike. A ratio is the median over the rounds, with the interval between its quartiles.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

from machine import describe

HERE = Path(__file__).resolve().parent
LOOP = [str(HERE / "loop.py")]
PYTHON = [sys.executable]
UNSTALL = [sys.executable, "-m", "unstall", "run"]
PAIR = "a = clock(); b = clock()"


def main() -> int:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--quick", action="store_true", help="leave out the run without stack sampling")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="leave out the other profilers")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    rows: list[tuple[str, str, str]] = []

    def tell(what: str, figure: str, goal: str = "") -> None:
        rows.append((what, figure, goal))
        print(f"{what:66} {figure:34} {goal}", flush=True)

    loop = [*LOOP, "--steps", str(options.steps)]
    slow = [*LOOP, "--steps", str(max(60, options.steps // 40)), "--hidden", "2600"]
    tell("loop of 1 ms steps, unstall run", ratio(PYTHON + loop, UNSTALL + loop, options.rounds), "≤ 1.01")
    if not options.quick:
        without = [*UNSTALL, "--no-sampling", *loop]
        tell("the same, without stack sampling", ratio(PYTHON + loop, without, options.rounds))
    tell("loop of steps over 20 ms, unstall run", ratio(PYTHON + slow, UNSTALL + slow, options.rounds), "≤ 1.005")
    if options.peers:
        for how in ("torch-profiler", "cprofile", *(["traceml"] if importlib.util.find_spec("traceml") else [])):
            tell(f"loop of 1 ms steps, {how}", ratio(PYTHON + loop, [*PYTHON, *loop, "--how", how], 1))
    tell("a span, in pairs of perf_counter_ns calls", span_in_pairs(), "≤ 2")
    tell("import unstall", f"{import_ms():.1f} ms", "≤ 60 ms")
    tell("start-up of unstall run, before and after the program", f"{start_up_s():.2f} s", "≤ 0.7 s")
    tell("memory of a program of 10 million spans, above one of none", f"{memory_mb():.1f} MB", "≤ 64 MB")
    if options.write:
        options.write.write_text(markdown(rows, options.rounds), encoding="utf-8")
    return 0


def seconds(command: Sequence[str]) -> float:
    """What the program itself says its steps took."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    found = re.search(r"seconds=([0-9.]+)", result.stdout)
    if not found:
        raise SystemExit(f"{' '.join(command)} said nothing:\n{result.stdout}\n{result.stderr}")
    return float(found[1])


def ratio(plain: Sequence[str], watched: Sequence[str], rounds: int) -> str:
    """Watched over plain, median of the rounds and quartiles; each round is A B B A."""
    ratios = []
    for _ in range(rounds):
        a1, b1, b2, a2 = seconds(plain), seconds(watched), seconds(watched), seconds(plain)
        ratios.append((b1 + b2) / (a1 + a2))
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    return f"{statistics.median(ratios):.4f}  ({low:.4f} – {high:.4f})"


def span_in_pairs() -> str:
    """Cost of a recorded span over that of a bare pair of clock calls, best of interleaved repeats."""
    from time import perf_counter_ns

    from unstall.benchmark.recording import NATIVE, native

    with tempfile.TemporaryDirectory() as folder:
        native.open(os.path.join(folder, "rec.bin"))
        names = {"span": native.span, "clock": perf_counter_ns}
        pairs, spans = [], []
        for _ in range(40):
            pairs.append(timeit.timeit(PAIR, globals=names, number=50_000))
            spans.append(timeit.timeit('with span("x"): pass', globals=names, number=50_000))
        native.close()
    each = 1e9 / 50_000
    kind = "" if NATIVE else ", Python recorder"
    return f"{min(spans) / min(pairs):.2f}  ({min(spans) * each:.0f} ns, pair {min(pairs) * each:.0f} ns{kind})"


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
            "import resource, sys, tempfile; from unstall.benchmark.recording import native;"
            "folder = tempfile.TemporaryDirectory(); native.open(folder.name + '/rec.bin'); span = native.span\n"
            f"for _ in range({count}):\n"
            "    with span('x'): pass\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        return int(subprocess.run([*PYTHON, "-c", code], capture_output=True, text=True).stdout) / 1024

    return peak(10_000_000) - peak(10)


def markdown(rows: Sequence[tuple[str, str, str]], rounds: int) -> str:
    """The table for docs/."""
    lines = [
        "# Overhead",
        "",
        f"`make overhead` on {describe()}. Ratios of the wall time of the same steps, watched over plain,",
        f"in fresh processes, interleaved A B B A: median of {rounds} rounds (others 1) and quartiles.",
        "",
        "| what | measured | goal |",
        "| --- | --- | --- |",
        *(f"| {what} | {figure} | {goal} |" for what, figure, goal in rows),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
