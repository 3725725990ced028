"""Named public programs, unmodified: the verdict, whether their outputs stay the same bit for bit, what watching costs.

    python bench/public.py --commands                      how to get the programs of public_programs.py
    make public-bench FOLDERS=~/public                     all of them, and the table in docs/public-programs.md
    python bench/public.py ~/public --only "makemore rnn"

The folder holds a checkout of each repository as ``owner+name``. Every run has a copy of its own. Each program is run
plain, watched, watched, plain. What the two plain runs agree on, printed numbers and files, must be the same in both
watched runs; what they do not agree on (times) cannot be compared and is counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kept_rows import keep, rows_in
from machine import describe, other_sittings, version
from public_programs import PROGRAMS, Program, clone, folder_of

from unstall.prove.left_behind.texts import Figure, split

SEEDED = Path(__file__).with_name("seeded.py")
_LIMIT_S = 600


class ProgramFailed(Exception):
    """It does not run here as it is."""


@dataclass(frozen=True)
class Outcome:
    """What one run left."""

    status: int
    words: tuple[str, ...]
    """Standard output, between its numbers."""
    figures: tuple[Figure, ...]
    """These."""
    files: Mapping[str, str]
    """Path in the copy → digest, of files that were made or changed."""
    wall_s: float
    cpu_s: float
    report: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One program of the table."""

    name: str
    repository: str
    commit: str
    command: str
    verdict: str
    culprit: str
    confidence: str
    same: str
    """``yes``, or what differed first."""
    compared: str
    """How much of the outputs could be compared."""
    wall: float
    """Watched over plain, the whole run."""
    cpu: float
    seconds: float
    version: str
    machine: str


def main() -> int:
    """Run the programs, print the table, write it where asked; exit code 1 when an output differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="?", help="holds the checkouts, named owner+name")
    parser.add_argument("--commands", action="store_true", help="print how to get them, and stop")
    parser.add_argument("--only", help="names of programs, with commas between")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    if options.commands or options.folders is None:
        print("\n".join(commands()))
        return 0
    names = options.only.split(",") if options.only else [program.name for program in PROGRAMS]
    rows = {row.name: row for row in rows_in(options.rows, Row)}
    for program in PROGRAMS:
        checkout = options.folders / folder_of(program.repository)
        if program.name not in names:
            continue
        if not checkout.is_dir():
            print(f"{program.name}: no {checkout}; `python bench/public.py --commands` says how to get it")
            continue
        try:
            rows[program.name] = row = measured(program, checkout)
        except ProgramFailed as error:
            print(error)
            continue
        print(f"{row.name:42} {row.verdict:34} same: {row.same:24} wall {row.wall:.3f} cpu {row.cpu:.3f}", flush=True)
        keep(options.rows, rows.values())
    if options.write:
        options.write.write_text(markdown(list(rows.values())), encoding="utf-8")
    return int(any(row.same != "yes" for row in rows.values()))


def commands() -> list[str]:
    """Shell lines that get every repository at its commit."""
    lines = [f"pip install {' '.join(sorted({package for program in PROGRAMS for package in program.needs}))}"]
    for repository, commit in sorted({(program.repository, program.commit) for program in PROGRAMS}):
        lines.append(clone(repository, commit))
    return lines


def measured(program: Program, checkout: Path) -> Row:
    """Run one program plain, watched, watched, plain."""
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder) / "original"
        lay_out(program, checkout, original)
        if program.prepare:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            subprocess.run(program.prepare, shell=True, cwd=original / program.folder, check=True,
                           env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL)  # fmt: skip
        first, one, two, last = (
            run(program, original, Path(folder), watched=watched) for watched in (False, True, True, False)
        )
    differences = [difference(first, last, watched) for watched in (one, two)]
    verdict = one.report.get("verdict", {})
    culprit = verdict.get("culprit") or {}
    return Row(
        name=program.name,
        repository=program.repository,
        commit=program.commit,
        command=" ".join(("python", *program.arguments)),
        verdict="/".join(filter(None, (verdict.get("pattern"), verdict.get("cause")))) or "none",
        culprit=f"{culprit.get('function')}, {Path(culprit['file']).name}:{culprit['line']}" if culprit else "",
        confidence=verdict.get("confidence") or "",
        same=next(filter(None, differences), "yes"),
        compared=comparable(first, last),
        wall=(one.wall_s + two.wall_s) / (first.wall_s + last.wall_s),
        cpu=(one.cpu_s + two.cpu_s) / (first.cpu_s + last.cpu_s),
        seconds=(first.wall_s + last.wall_s) / 2,
        version=version("src"),
        machine=describe(),
    )


def lay_out(program: Program, checkout: Path, folder: Path) -> None:
    """The files of a program's commit, but for large data that a copy may lack: ``prepare`` puts others there."""
    git = ["git", "-C", str(folder)]
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(checkout), str(folder)], check=True)
    subprocess.run([*git, "read-tree", program.commit], check=True)
    subprocess.run([*git, "checkout-index", "--all", "--quiet"], check=False, stderr=subprocess.DEVNULL)
    if not (folder / program.folder).is_dir():
        raise SystemExit(f"{program.name}: {checkout} has no {program.folder}")


def run(program: Program, original: Path, folder: Path, *, watched: bool) -> Outcome:
    """One run in a copy of its own, which has the same name every time."""
    copy, report = folder / "copy", folder / "report.json"
    shutil.copytree(original, copy, symlinks=True)
    before = digests(copy)
    command = [sys.executable, *(() if program.seeded else (str(SEEDED),)), *program.arguments]
    if watched:
        command = [sys.executable, "-m", "unstall", "run", "--json", str(report), *command[1:]]
    fixed = {"MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"}  # sets of words have the same order in all runs
    env = {**os.environ, **fixed, "UNSTALL_STATE": str(folder / "state")}
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=copy / program.folder, env=env, capture_output=True, text=True, timeout=_LIMIT_S)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    changed = {path: digest for path, digest in digests(copy).items() if before.get(path) != digest}
    shutil.rmtree(copy)
    if done.returncode:
        raise ProgramFailed(f"{program.name} ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    words, figures = split(done.stdout)
    return Outcome(
        status=done.returncode,
        words=tuple(words),
        figures=tuple(figures),
        files=changed,
        wall_s=wall,
        cpu_s=after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
        report=json.loads(report.read_text()) if watched else {},
    )


def digests(folder: Path) -> dict[str, str]:
    """Of every file but what Python compiles and git keeps."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", ".git"} & set(path.relative_to(folder).parts)
    }


def printed(outcome: Outcome) -> list[str]:
    """The text and its numbers, in turn, without figures of time: two of three runs may well take as long."""
    figures = ["" if figure.is_time else figure.text for figure in outcome.figures]
    return [part for pair in zip(outcome.words, [*figures, ""]) for part in pair]


def difference(first: Outcome, last: Outcome, watched: Outcome) -> str:
    """Where a watched run differs from what both plain runs agree on; empty where it never does."""
    if not first.status == last.status == watched.status:
        return f"exit code {watched.status}"
    if len(first.words) == len(last.words):
        if len(watched.words) != len(first.words):
            return "more or less was printed"
        for a, b, c in zip(printed(first), printed(last), printed(watched)):
            if a == b and a != c:
                return f"printed {c!r} instead of {a!r}"
    names = set(first.files) & set(last.files)
    if missing := sorted(names - set(watched.files)):
        return f"did not write {missing[0]}"
    if len(names) == len(first.files) == len(last.files) and (added := sorted(set(watched.files) - names)):
        return f"wrote {added[0]}"
    for name in sorted(names):
        if first.files[name] == last.files[name] != watched.files[name]:
            return f"wrote {name} otherwise"
    return ""


def comparable(first: Outcome, last: Outcome) -> str:
    """How many numbers and files the plain runs agree on."""
    pairs = [(a.text, b.text) for a, b in zip(first.figures, last.figures) if not a.is_time]
    files = set(first.files) & set(last.files)
    same = sum(first.files[name] == last.files[name] for name in files)
    text = f"{sum(a == b for a, b in pairs)} of {len(pairs)} numbers"
    return text + (f", {same} of {len(first.files)} files" if first.files else "")


def markdown(rows: Sequence[Row]) -> str:
    """The page of docs/."""
    equal = sum(row.same == "yes" for row in rows)
    nothing = [row.name for row in rows if not re.search(r"\b[1-9]\d* of", row.compared)]
    bare = f" In {len(nothing)} of them no number and no file can be compared: {', '.join(nothing)}." if nothing else ""
    sittings = other_sittings({row.name: (row.version, row.machine) for row in rows}, ("", ""))
    extra = sorted((row.wall - 1) * row.seconds for row in rows)
    lines = [
        "# Public programs",
        "",
        "Programs of others, at a named commit, unmodified: what `unstall run` says of them, whether what they print",
        "and write stays the same bit for bit, and what watching costs. `python bench/public.py --commands` prints how",
        "to get them; `make public-bench FOLDERS=...` made this table.",
        "",
        sittings,
        "",
        f"**Outputs the same in {equal} of {len(rows)}, as far as they can be compared.**{bare}",
        "",
        "| program | verdict | culprit | same | compared | wall | CPU | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        where = f"[{row.name}](https://github.com/{row.repository}/tree/{row.commit})"
        verdict = f"{row.verdict} ({row.confidence})" if row.confidence else row.verdict
        culprit = f"`{row.culprit}`" if row.culprit else ""
        cells = (where, verdict, culprit, row.same, row.compared, f"{row.wall:.2f}", f"{row.cpu:.2f}")
        lines.append(f"| {' | '.join(cells)} | {row.seconds:.0f} |")
    lines += [
        "",
        "- **Same**: what two plain runs agree on is compared with two watched runs; **compared** says how much it is.",
        "  What a plain run prints differently each time (names of temporary files) cannot be compared, nor can times.",
        "- **Wall** and **CPU**: watched over plain, whole runs with start-up, sampler and report, in the order plain,",
        "  watched, watched, plain. A program that has one core shares it with the sampler. Watching took",
        f"  {extra[0]:.1f} to {extra[-1]:.1f} seconds, {statistics.median(extra):.1f} in the median: start and report",
        "  take about one, whatever the program, the sampler's windows half of one.",
        "- Where a program does not seed its random numbers, bench/seeded.py seeds them and runs it; and",
        "  `PYTHONHASHSEED` is 0 in every run.",
        "",
        "Commands:",
        "",
        *(f"- {row.name}: `{row.command}`" for row in rows),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
