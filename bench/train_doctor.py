"""train-doctor beside unstall: on the zoo, on the corpus of changes, and on its own published case.

    python -m venv rival && rival/bin/pip install train-doctor==0.2.0
    make rival-bench RIVAL=rival/bin/train-doctor EXAMPLES=../public/pytorch+examples
    python bench/train_doctor.py rival/bin/train-doctor --rows rows.json          hours; goes on after the last row
    python bench/train_doctor.py rival/bin/train-doctor --rows rows.json --part corpus          one of the three
    python bench/train_doctor.py rival/bin/train-doctor --rows rows.json --examples ../public/pytorch+examples

- ``zoo``: ``train-doctor fix`` gets each program that has a faster twin. The gain of the patch that it writes is
  measured again as bench/optimize.py does, whose rows are the other side.
- ``corpus``: ``train-doctor compare`` judges each change of bench/hacks: ``keep`` of a bad one is a false accept. The
  rows of bench/prove.py are the other side.
- ``published``: pytorch/examples mnist_rnn, for which train-doctor's page says 1.30×; ``fix``, ``unstall optimize``,
  and what each patch gains in whole runs. torchvision is a stand-in with made digits (bench/rivals).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from hacks import ENTRY
from hacks.corpus import Change, corpus
from kept_rows import keep, rows_in
from machine import describe
from marked import put_between_marks
from optimize import rate
from optimize_table import CASES, HEALTHY, ZOO, geometric_mean
from optimize_table import Row as Optimized
from prove import REJECTED, drawn
from prove import Row as Judged

RIVALS = Path(__file__).resolve().parent / "rivals"
RESULTS = Path(__file__).resolve().parent / "results"
PUBLISHED = "pytorch/examples mnist_rnn"
_SHORT = ("--warmup-steps", "3", "--steps", "15", "--seconds", "0")
"""Of a comparison: the programs of the corpus have fewer steps than the 55 that it wants by default."""
_LIMIT_S = 3600
LEGEND = (
    "## Beside train-doctor",
    "",
    "On the zoo, on the corpus of changes that `unstall prove` is judged by, and on mnist_rnn of pytorch/examples,",
    "which its own page shows; torchvision is a stand-in with made digits there. Changes are taken in a drawn order,",
    "so that a part stands for the whole. It answers sooner, and asks less: `fix` changes settings, not code, and",
    "`compare` looks at the steps' times and at losses. It wants 55 steps by default; the programs of the corpus have",
    "fewer, so it was given `--warmup-steps 3 --steps 15`, and might be fooled less often with more. The zoo and the",
    "corpus are ours, and `unstall` was made with most of them at hand: see [how often it is",
    "fooled](prove-figures.md) and [programs of others](real-programs.md). mnist_rnn was not at hand:",
    "at first, `unstall optimize` kept a cache of samples there that made two epochs 1.7 times as long. What a first",
    "epoch costs is measured since, and nothing is kept.",
    "",
)


@dataclass(frozen=True)
class Row:
    """One program or change."""

    part: str
    name: str
    verdict: str
    """What was proven, or the decision of a comparison."""
    gain: float | None
    """Of the patch, measured again; 1 where none was written, None in the corpus."""
    minutes: float
    machine: str
    """And the day."""


def main() -> int:
    """Run the parts, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", type=Path, help="train-doctor")
    parser.add_argument("--part", action="append", choices=("zoo", "corpus", "published"))
    parser.add_argument("--examples", type=Path, help="a checkout of pytorch/examples, for the published case")
    parser.add_argument("--rows", type=Path, required=True, help="keep the rows there as JSON; those in it stay")
    parser.add_argument("--write", type=Path, help="put the tables between the marks in this file")
    options = parser.parse_args()
    rows = rows_in(options.rows, Row)
    for part, name, make in jobs(options):
        if any((row.part, row.name) == (part, name) for row in rows):
            continue
        began = time.monotonic()
        verdict, gain = make()
        rows.append(Row(part, name, verdict, gain, round((time.monotonic() - began) / 60, 2), describe()))
        print(rows[-1], flush=True)
        keep(options.rows, rows)
    page = "\n".join([*LEGEND, *zoo_table(rows), *corpus_table(rows), *published_table(rows), *machines(rows)])
    print(page)
    if options.write:
        put_between_marks(options.write, "bench/train_doctor.py", page)
    return 0


def jobs(options: argparse.Namespace) -> Iterator[tuple]:
    """(part, name, what makes its verdict and gain)."""
    parts, command = options.part or ("zoo", "corpus", "published"), options.command.absolute()
    if "zoo" in parts:
        for name in sorted(CASES, key=drawn):
            yield "zoo", name, lambda name=name: fixed(command, name)
    if "corpus" in parts:
        for change in sorted(corpus(), key=lambda change: drawn(change.key)):
            yield "corpus", change.key, lambda change=change: compared(command, change)
    if "published" in parts and options.examples:
        for tool in ("train-doctor", "unstall"):
            yield "published", tool, lambda tool=tool: published(tool, command, options.examples)


def machines(rows: Sequence[Row]) -> Iterator[str]:
    """On what each part was measured."""
    for part in dict.fromkeys(row.part for row in rows):
        named = Counter(row.machine for row in rows if row.part == part)
        yield f"- train-doctor, {part}: {'; '.join(f'{count} on {machine}' for machine, count in named.most_common())}."
    yield "- unstall: see [what optimize reaches](optimize-figures.md) and [proofs](prove-figures.md)."
    yield "- Minutes are not all of one machine."
    yield ""


def fixed(command: Path, name: str) -> tuple[str, float]:
    """What `fix` proves of a program of the zoo, and what its patch gains."""
    with tempfile.TemporaryDirectory() as scratch:
        slow, patched = Path(scratch, "slow"), Path(scratch, "patched")
        shutil.copytree(ZOO, slow, ignore=shutil.ignore_patterns("__pycache__"))
        report = asked(command, slow, "fix", "--no-card", "--", sys.executable, f"{name}.py", "--seconds", "60")
        verdict, patch = proven(report, slow)
        if not patch:
            return verdict, 1.0
        shutil.copytree(slow, patched)
        subprocess.run(["git", "apply", "-"], input=patch, cwd=patched, check=True)
        rates: dict[Path, list[float]] = {slow: [], patched: []}
        for folder in (slow, patched, patched, slow) * 2:
            rates[folder].append(rate(folder, name, "slow", 10.0))
        return verdict, mean(rates[patched]) / mean(rates[slow])


def compared(command: Path, change: Change) -> tuple[str, None]:
    """The decision of `compare` on a change."""
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch, "before"), Path(scratch, "after")
        for folder in (before, after):
            folder.mkdir()
            patch = change.lay_out(folder)
        change.prepare(before)
        subprocess.run(["git", "apply", str(patch)], cwd=after, check=True)
        runs = [f"{sys.executable} {folder / ENTRY}" for folder in (before, after)]
        words = ("compare", *_SHORT, "--baseline", runs[0], "--candidate", runs[1])
        return asked(command, Path(scratch), *words).get("decision", "failed"), None


def published(tool: str, command: Path, examples: Path) -> tuple[str, float]:
    """What a tool proves of mnist_rnn, and what its patch gains in the time of an epoch and its test."""
    with tempfile.TemporaryDirectory() as scratch:
        slow, patched = Path(scratch, "slow"), Path(scratch, "patched")
        shutil.copytree(examples / "mnist_rnn", slow)
        shutil.copytree(RIVALS / "torchvision", slow / "torchvision")
        if tool == "unstall":
            words = ("optimize", "--budget", "6m", "--json", "report.json", "--patch", "kept.patch", "main.py")
            subprocess.run(
                [sys.executable, "-m", "unstall", *words, "--epochs", "3"],
                cwd=slow,
                capture_output=True,
                timeout=_LIMIT_S,
            )
            report = json.loads((slow / "report.json").read_text())
            kept = slow / "kept.patch"
            patch = kept.read_bytes() if kept.exists() else b""
            verdict = ", ".join(remedy["name"] for remedy in report["remedies"] if remedy["kept"])
        else:
            report = asked(command, slow, "fix", "--no-card", "--", sys.executable, "main.py", "--epochs", "3")
            verdict, patch = proven(report, slow)
        if not patch:
            return verdict or "nothing", 1.0
        shutil.copytree(slow, patched)
        subprocess.run(["git", "apply", "-"], input=patch, cwd=patched, check=True)
        taken: dict[Path, list[float]] = {slow: [], patched: []}
        for folder in (slow, patched, patched, slow):
            began = time.monotonic()
            subprocess.run([sys.executable, "main.py", "--epochs", "2"], cwd=folder, capture_output=True, check=True)
            taken[folder].append(time.monotonic() - began)
        return verdict, mean(taken[slow]) / mean(taken[patched])


def asked(command: Path, folder: Path, verb: str, *words: str) -> dict:
    """The JSON that train-doctor prints; empty where it prints none."""
    done = subprocess.run(
        [str(command), verb, "--json", "--quiet", *words], cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S
    )
    try:
        report: dict = json.loads(done.stdout)
    except ValueError:
        return {}
    return report


def proven(report: dict, folder: Path) -> tuple[str, bytes]:
    """(what `fix` has proven in a folder, the patch of it; empty where it changes no source)."""
    if not report or report.get("error"):
        return "failed", b""
    found = report.get("proven")
    if not found:
        return "nothing", b""
    path = (report.get("patch") or {}).get("patch_path")
    return found["describe"], (folder / path).read_bytes() if path else b""


def zoo_table(rows: Sequence[Row]) -> Iterator[str]:
    """The programs that either tool made faster, and both scores."""
    ours = {row.name: row for row in rows_in(RESULTS / "optimize.json", Optimized)}
    theirs = {row.name: row for row in rows if row.part == "zoo" and row.name in ours and row.name not in HEALTHY}
    if not theirs:
        return
    yield "| program | `train-doctor fix` | gain | `unstall optimize` | gain |"
    yield "| --- | --- | ---: | --- | ---: |"
    gains = {}
    for name, row in theirs.items():
        own = ours[name].gain or 1.0
        gains[name] = (row.gain or 1.0, own)
        if row.verdict not in ("nothing", "failed") or ours[name].kept:
            kept = ", ".join(ours[name].kept) or "nothing"
            yield f"| {name} | {row.verdict} | {row.gain or 1.0:.2f}× | {kept} | {own:.2f}× |"
    means = [geometric_mean([pair[side] for pair in gains.values()]) for side in (0, 1)]
    yield f"| geometric mean of {len(gains)} | | {means[0]:.2f}× | | {means[1]:.2f}× |"
    minutes = [median(row.minutes for row in theirs.values()), median(ours[name].seconds / 60 for name in theirs)]
    yield f"| median minutes | | {minutes[0]:.1f} | | {minutes[1]:.1f} |"
    yield ""
    failed = [name for name, row in theirs.items() if row.verdict == "failed"]
    yield f"The means are of all {len(gains)} programs that have an expert's version, with those in which neither tool"
    yield f"kept anything, which the table leaves out. `fix` ended with an error in {', '.join(failed) or 'none'}."
    yield ""


def corpus_table(rows: Sequence[Row]) -> Iterator[str]:
    """How often each judge is fooled by a bad change, and wrongs an honest one."""
    honest = {change.key: change.honest for change in corpus()}
    theirs = {row.name: (row.verdict, row.minutes) for row in rows if row.part == "corpus" and row.name in honest}
    judged = rows_in(RESULTS / "prove.json", Judged)
    ours = {row.key: (row.verdict, row.minutes) for row in judged if row.key in theirs}
    theirs = {key: theirs[key] for key in ours}
    if not theirs:
        return
    yield "| | bad changes accepted | honest ones accepted | honest ones rejected | median minutes |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    sides = (
        ("`train-doctor compare`", theirs, "keep", ("reject",)),
        ("`unstall prove`", ours, "proven", REJECTED),
    )
    for name, answers, accepts, rejects in sides:
        bad = [answers[key][0] for key in answers if not honest[key]]
        fair = [answers[key][0] for key in answers if honest[key]]
        rejected = sum(verdict in rejects for verdict in fair)
        minutes = median(minutes for _, minutes in answers.values())
        accepted = f"{bad.count(accepts)} of {len(bad)} | {fair.count(accepts)} of {len(fair)}"
        yield f"| {name} | {accepted} | {rejected} of {len(fair)} | {minutes:.1f} |"
    fooled, wronged = (sum(row.wrong for row in judged if row.honest == fair) for fair in (False, True))
    bad_ones = sum(not row.honest for row in judged)
    yield ""
    yield "The rest is inconclusive. Of all changes that `unstall prove` has judged, it accepted"
    yield f"{fooled} of {bad_ones} bad ones, and rejected {wronged} of {len(judged) - bad_ones} honest ones."
    yield ""


def published_table(rows: Sequence[Row]) -> Iterator[str]:
    """Both on train-doctor's own case."""
    chosen = [row for row in rows if row.part == "published"]
    if not chosen:
        return
    yield f"| {PUBLISHED} | proven | gain of whole runs | minutes |"
    yield "| --- | --- | ---: | ---: |"
    for row in chosen:
        yield f"| {row.name} | {row.verdict} | {row.gain or 1.0:.2f}× | {row.minutes:.1f} |"
    yield ""


if __name__ == "__main__":
    sys.exit(main())
