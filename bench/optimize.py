"""What `unstall optimize` reaches: on programs with a known cure, beside the cure itself, and on the hot-dog example.

    make optimize-bench                               every case in one sitting (hours); the table in docs/
    python bench/optimize.py --rows rows.json --resume      go on after the last row, if the version is the same
    python bench/optimize.py --only worker_restart --budget 3m
    python bench/optimize.py --only text_stream --kept patches --rows rows.json --again      the kept patch once more

For each program of tests/zoo that has a faster twin: the speed-up of that twin, the expert's, and that of the patched
script, both by the program's own ``steps_per_s``, in turns with the original (slow, fast, patched, patched, fast,
slow, and again). The score of a program is its own gain over the expert's, not capped, 1 / the expert's where nothing
was kept; no program is left out. Where samples are kept for later epochs, the gain is that of a training of
EPOCHS epochs, the first of which fills the cache (later.py). A kept change that shows no gain when it is measured
again is a false win. Healthy programs have no cure: they count for false wins alone. Hot dog has no twin.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from kept_rows import keep, rows_in
from machine import describe, version
from marked import put_between_marks
from optimize_table import CACHE, CASES, MEASURED, ZOO, Row, line, markdown, short_table

from unstall.optimize.thresholds import LEAST_GAIN

ROOT = Path(__file__).resolve().parents[1]
LATER = ROOT / "bench" / "later.py"
PROGRAMS = (ZOO, ROOT / "bench" / "heldout")
HOTDOG = ROOT / "examples" / "hotdog"
NO_BOUND = 1000.0
"""The upper end of a gain of which none is known."""
BUDGETS = {"hotdog": "15m"}
"""As the README runs it: with the budget that one has who asks for none."""
_RATE = re.compile(r"steps_per_s=([0-9.]+)")
_EPOCHS = re.compile(r"first_epoch=([0-9.]+|nan) later_epochs=([0-9.]+|nan)")


@dataclass(frozen=True)
class Measuring:
    """How a program is searched and timed."""

    search: tuple[str, ...]
    """Options of `unstall optimize`."""
    seconds: float
    """For each run of a twin."""
    rounds: int
    """Of two runs of each twin."""
    kept: Path | None = None
    """Folder for the reports and patches."""
    again: bool = False
    """Take them from there, do not search."""


def main() -> int:
    """Run the cases, print the table, write it where asked; exit code 1 when a goal of quality is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of cases, with commas between; hotdog is one")
    parser.add_argument(
        "--budget", help="for each program: 4m, and for the example what `unstall optimize` takes by itself"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="for each run of a twin")
    parser.add_argument("--rounds", type=int, default=2, help="of two runs of each twin")
    parser.add_argument("--kept", type=Path, help="folder for the reports and patches")
    parser.add_argument("--again", action="store_true", help="measure the patches in that folder, do not search")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows")
    parser.add_argument("--resume", action="store_true", help="leave alone the rows of this version and machine")
    parser.add_argument("--replay", action="store_true", help="run nothing: the tables of the rows that are kept")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    parser.add_argument("--readme", type=Path, help="put a short table between the marks in this file")
    options = parser.parse_args()
    names = [] if options.replay else options.only.split(",") if options.only else [*CASES, "hotdog"]
    rows = rows_in(options.rows, Row)
    if options.resume:
        done = {row.name for row in rows if row.version == version(*MEASURED)}
        names = [name for name in names if name not in done]
    for name in names:
        budget = options.budget or BUDGETS.get(name, "4m")
        how = Measuring(("--budget", budget), options.seconds, options.rounds, options.kept, options.again)
        with tempfile.TemporaryDirectory() as folder:
            row = (hotdog if name == "hotdog" else case)(name, Path(folder), how)
        rows = [other for other in rows if other.name != name] + [row]
        print(line(row), flush=True)
        keep(options.rows, rows)
        if options.write:
            options.write.write_text(markdown(rows), encoding="utf-8")
    if options.write:
        options.write.write_text(markdown(rows), encoding="utf-8")
    if options.readme:
        put_between_marks(options.readme, "make optimize-bench", short_table(rows))
    print("\n" + markdown(rows))
    return int(any(row.false_win or row.unconfirmed or row.not_equivalent for row in rows))


def case(name: str, folder: Path, how: Measuring) -> Row:
    """One program of the zoo or of bench/heldout."""
    copy, patched = folder / "zoo", folder / "patched"
    for programs in PROGRAMS:
        shutil.copytree(programs, copy, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    report, patch, spent = optimized(name, copy, [f"{name}.py", "--seconds", "600"], how)
    shutil.copytree(copy, patched)
    if patch:
        subprocess.run(["git", "apply", "-"], input=patch, cwd=patched, check=True)
    slow, fast, changed, firsts = [], [], [], []
    caches, compiles = CACHE in kept(report), start(report)
    if compiles is not None:  # a later run finds most of it compiled, and is what is timed
        rate(patched, name, "slow", how.seconds)
    for order in ((0, 1, 2), (2, 1, 0)) * how.rounds:
        for which in order:
            if which == 0:
                slow.append(rate(copy, name, "slow", how.seconds))
            elif which == 1:
                fast.append(rate(copy, name, "fast", how.seconds))
            elif caches and not changed:  # its first epoch may take minutes: once is enough
                first, later = rates_of_epochs(patched, name, how.rounds * how.seconds)
                firsts.append(first)
                changed.append(later)
            elif not caches:
                changed.append(rate(patched, name, "slow", how.seconds))
    again = None if math.isnan(mean(changed)) else mean(changed) / mean(slow)
    first = mean(firsts) / mean(slow) if firsts and not math.isnan(mean(firsts)) else None
    expert = mean(fast) / mean(slow)
    return Row(name, kept(report), report["total_speedup"], again, expert, not_equivalent(report), spent,
               version(*MEASURED), describe(), sameness(report), first, *interval(report), advised(report),
               compiles)  # fmt: skip


def hotdog(name: str, folder: Path, how: Measuring) -> Row:
    """The example, by the seconds that it prints for each epoch; one that caches fills the cache in the first."""
    copy = folder / name
    shutil.copytree(HOTDOG, copy, ignore=shutil.ignore_patterns("__pycache__", "runs", ".unstall"))
    report, patch, spent = optimized(name, copy, ["train.py", "--epochs", "20"], how)
    _, slow = epoch_seconds(copy, 2)
    if patch:
        subprocess.run(["git", "apply", "-"], input=patch, cwd=copy, check=True)
    first, later = epoch_seconds(copy, 4)
    filled = slow / first if CACHE in kept(report) else None
    return Row(name, kept(report), report["total_speedup"], slow / later, None, not_equivalent(report), spent,
               version(*MEASURED), describe(), sameness(report), filled, *interval(report),
               advised(report))  # fmt: skip


def optimized(name: str, folder: Path, words: list[str], how: Measuring) -> tuple[dict, bytes, float]:
    """(report, patch, seconds) of the command, or of that which was kept."""
    at = (how.kept or folder).absolute()
    report, patch, spent = (at / f"{name}{end}" for end in (".json", ".patch", ".seconds"))
    if not how.again:
        at.mkdir(parents=True, exist_ok=True)
        patch.unlink(missing_ok=True)
        began = time.monotonic()
        command = [sys.executable, "-m", "unstall", "optimize", *how.search]
        subprocess.run([*command, "--json", str(report), "--patch", str(patch), *words], cwd=folder, check=True)
        spent.write_text(f"{time.monotonic() - began:.1f}", encoding="utf-8")
    found: dict = json.loads(report.read_text())
    return found, patch.read_bytes() if patch.exists() else b"", float(spent.read_text())


def rate(folder: Path, name: str, variant: str, seconds: float) -> float:
    """The program's own steps per second."""
    command = [sys.executable, f"{name}.py", "--variant", variant, "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    found = _RATE.search(done.stdout)
    assert found, done.stdout
    return float(found[1])


def rates_of_epochs(folder: Path, name: str, seconds: float) -> tuple[float, float]:
    """Steps per second in the first epoch, and in the later ones; NaN where it is too short to tell, or too long.

    Of a program of one epoch, that one is a later one: nothing is cached for it.
    """
    command = [sys.executable, str(LATER), str(seconds), f"{name}.py", "--variant", "slow"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    found = _EPOCHS.search(done.stdout)
    assert found, done.stdout
    return float(found[1]), float(found[2])


def epoch_seconds(folder: Path, epochs: int) -> tuple[float, float]:
    """Seconds of the first epoch of the hot-dog example, and the mean of the others."""
    done = subprocess.run(
        [sys.executable, "train.py", "--epochs", str(epochs)], cwd=folder, check=True, capture_output=True, text=True
    )
    first, *later = (float(one) for one in re.findall(r"epoch \d+: ([0-9.]+) s", done.stdout))
    return first, mean(later)


def kept(report: dict) -> list[str]:
    """Names of the remedies that were kept."""
    return [remedy["name"].partition(":")[0] for remedy in report["remedies"] if remedy["kept"]]


def interval(report: dict) -> tuple[float | None, float | None]:
    """That of the headline; of nothing where nothing was kept."""
    low, high = report.get("total_ci95") or (None, None)
    return low, high


def start(report: dict) -> float | None:
    """Seconds by which each run starts later, as what was kept compiles first; None where nothing compiles."""
    starts = [remedy["start_s"] for remedy in report["remedies"] if remedy["kept"] and remedy.get("start_s")]
    return sum(max(0.0, seconds) for seconds in starts) if starts else None


def sameness(report: dict) -> str:
    """That of the kept change whose results are the least the same; empty where nothing was kept."""
    order = ("exact", "close", "reduced")
    measured = {remedy.get("sameness") for remedy in report["remedies"] if remedy["kept"]}
    return next((name for name in reversed(order) if name in measured), "")


def not_equivalent(report: dict) -> int:
    """Kept remedies that were not shown to compute the same."""
    kept = [remedy for remedy in report["remedies"] if remedy["kept"]]
    return sum(remedy.get("sameness") not in ("exact", "close") for remedy in kept)


def advised(report: dict) -> str:
    """The most that a change would bring that only ``--allow`` keeps; else, where nothing is kept, what is advised."""
    advice = [remedy for remedy in report["remedies"] if remedy.get("status") == "advice"]
    measured = [remedy for remedy in advice if (remedy.get("speedup") or 0.0) > LEAST_GAIN]
    if measured:
        best = max(measured, key=lambda remedy: remedy["speedup"])
        return f"`{best['name'].partition(':')[0]}` would bring {best['speedup']:.2f}× (`--allow {best['exactness']}`)"
    by_hand = [remedy["name"] for remedy in advice if remedy["name"].startswith("by-hand: ")]
    if kept(report) or not by_hand:
        return ""
    place, _, words = by_hand[0].removeprefix("by-hand: ").partition("): ")
    gain = report["verdict"]["expected_gain"]
    expected = (
        f"{gain['low']:.2f} to {gain['high']:.2f}×" if gain["high"] < NO_BOUND else f"at least {gain['low']:.2f}×"
    )
    return f"advised in {place.partition(' (')[0]}: {words} ({expected} expected)"


if __name__ == "__main__":
    sys.exit(main())
