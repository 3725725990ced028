"""Programs of many frameworks, each with one planted stall and its cure, in real installs.

    make frameworks-bench                                  all, and the table in docs/frameworks.md
    python bench/frameworks.py --only generate_no_cache --verbose

Programs and truth are in bench/frameworks. Each program takes as many steps as fill ten seconds on this machine, three
times: plain; under `unstall run`, whose verdict is judged and whose standard output must be that of the plain run; and
cured, under `unstall run` too, which must not find the planted stall again. A family whose pinned packages are not
those of this environment gets one of its own below build/frameworks, on top of it; torch is never replaced.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import accuracy
import accuracy_table
from kept_rows import keep, rows_in
from machine import describe

FOLDER = Path(__file__).with_name("frameworks")
ENVIRONMENTS = accuracy.ROOT / "build" / "frameworks"
NEVER_REPLACED = {"torch", "torchvision", "torchaudio", "numpy", "unstall"}
BEGIN, END = "<!-- make frameworks-bench -->\n", "<!-- end -->\n"
_LIMIT_S = 300
_FILLED_S = 10.0
_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


@dataclass(frozen=True)
class Outcome:
    """What one run left."""

    status: int
    printed: str
    """Standard output without the rate."""
    rate: float | None
    """Steps a second."""
    report: dict[str, Any] | None = None


@dataclass(frozen=True)
class Row:
    """One program of the table."""

    family: str
    packages: str
    verdict: dict[str, Any]
    """An :class:`accuracy_table.Row`, as a mapping."""
    same: bool
    """Standard output and exit code of the watched run were those of the plain one."""
    cured: str
    """What was found of the cured program."""

    @property
    def graded(self) -> accuracy_table.Row:
        """The verdict beside the truth."""
        return accuracy_table.Row(**self.verdict)

    @property
    def is_cured(self) -> bool:
        """Whether the planted stall is not found in the cured program."""
        return self.cured not in (self.graded.truth, self.graded.found, "no report")


_ENDED_BY_LIMIT = 124
"""Exit code of a run that took too long, as that of timeout(1)."""


class Unfit(Exception):
    """A family's packages do not fit beside what is installed."""


def main() -> int:
    """Run the programs, print a line each, write the table where asked; exit code 1 where an output differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of programs or families, with commas between")
    parser.add_argument("--verbose", action="store_true", help="show phases and evidence as well")
    parser.add_argument("--results", type=Path, help="keep the rows here, and go on from those of an earlier sitting")
    parser.add_argument("--write", type=Path, help="put the table between the marks of this page")
    options = parser.parse_args()
    rows = earlier(options.results)
    accuracy.load_cases(FOLDER)
    for family in sys.modules["truth"].FAMILIES:
        cases = [case for case in family.cases if is_wanted(case, family, options.only)]
        try:
            python = interpreter(family) if cases else sys.executable
        except (Unfit, subprocess.CalledProcessError) as error:
            print(f"{family.name}: {error}")
            continue
        for case in cases:
            row = judge(case, family, python, options)
            rows[case.name] = row
            same = "same output" if row.same else "OUTPUT DIFFERS"
            print(f"{accuracy_table.format_row(row.graded)} {same}, cured: {row.cured}", flush=True)
            save(list(rows.values()), options)  # after each, so that a run that is cut off leaves what it found
    print(summary(list(rows.values())))
    return int(not all(row.same for row in rows.values()))


def save(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Write the rows, and the table, where asked."""
    keep(options.results, rows)
    if options.write:
        write(options.write, rows)


def is_wanted(case: Any, family: Any, only: str | None) -> bool:
    """Whether a program was asked for, by its name or its family's."""
    return only is None or not {case.name, family.name}.isdisjoint(only.split(","))


def earlier(results: Path | None) -> dict[str, Row]:
    """The rows that are there already, by program."""
    return {row.graded.name: row for row in rows_in(results, Row)}


# ---------------------------------------------------------------- environments


def interpreter(family: Any) -> str:
    """A Python that has the family's packages: this one, or one on top of it that is made here.

    Raises :class:`Unfit` where they would replace what must stay.
    """
    if all(map(is_installed, family.pins)):
        return sys.executable
    folder = ENVIRONMENTS / family.name.replace(" ", "-")
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        venv.create(folder, with_pip=True)
        output(python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools")  # the newer one below it builds
        here, there = (output(each, "-c", _PURELIB).strip() for each in (sys.executable, python))
        Path(there, "below.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    planned = json.loads(output(python, *pip(family, "--dry-run", "--report", "-")))
    replaced = {item["metadata"]["name"].lower() for item in planned["install"]} & NEVER_REPLACED
    if replaced:
        raise Unfit(f"{', '.join(family.pins)} would replace {', '.join(sorted(replaced))}")
    output(python, *pip(family))
    return python


def is_installed(pin: str) -> bool:
    """Whether the distribution is there, in just this version."""
    name, _, version = pin.partition("==")
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def pip(family: Any, *more: str) -> list[str]:
    """Arguments of Python that install the family's packages; one that is built may need the torch that is here."""
    always = ("--quiet", "--disable-pip-version-check", "--no-build-isolation")
    return ["-m", "pip", "install", *always, *more, *family.pins]


def output(python: str, *arguments: str) -> str:
    """What Python prints. Raises CalledProcessError where it fails."""
    return subprocess.run([python, *arguments], check=True, capture_output=True, text=True).stdout


# ---------------------------------------------------------------- running


def judge(case: Any, family: Any, python: str, options: argparse.Namespace) -> Row:
    """Run a program plain, watched, and cured; compare."""
    plain = run(case, "slow", python, watched=False)
    if plain.rate and case.steps < _FILLED_S * plain.rate:
        case = replace(case, steps=math.ceil(_FILLED_S * plain.rate))
        plain = run(case, "slow", python, watched=False)
    slow = run(case, "slow", python, watched=True)
    fast = run(case, "fast", python, watched=True)
    if options.verbose and slow.report:
        accuracy.show(slow.report)
    graded = accuracy.row_of(case, slow.report)
    graded.speedup = fast.rate / slow.rate if fast.rate and slow.rate else None
    return Row(
        family=family.name,
        packages=", ".join(pin.replace("==", " ") for pin in family.pins) or "torch",
        verdict=asdict(graded),
        same=(plain.status, plain.printed) == (slow.status, slow.printed) and plain.rate is not None,
        cured=found(fast.report),
    )


def run(case: Any, variant: str, python: str, *, watched: bool) -> Outcome:
    """One run of a program, in an empty folder."""
    words = accuracy.command(case, FOLDER, variant, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        if watched:
            line = [python, "-m", "unstall", "run", "--json", str(report), "--", *words]
        else:
            line = [str(Path(python).with_name(words[0])), *words[1:]] if case.launch else [python, *words]
        try:
            ended = subprocess.run(line, cwd=folder, env=around(), capture_output=True, text=True, timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            print(f"{case.name}: ended after {_LIMIT_S} s", file=sys.stderr)
            return Outcome(status=_ENDED_BY_LIMIT, printed="", rate=None, report=None)
        if ended.returncode or (watched and not report.exists()):
            print(f"{case.name}, exit code {ended.returncode}: {ended.stderr[-1500:]}", file=sys.stderr)
        lines = [line for line in ended.stdout.splitlines() if not line.startswith("steps_per_s=")]
        return Outcome(
            status=ended.returncode,
            printed="\n".join(lines),
            rate=accuracy.rate(ended.stdout),
            report=json.loads(report.read_text()) if report.exists() else None,
        )


def around() -> dict[str, str]:
    """The environment of a run: py-spy lies beside this Python, not in an environment that is made on top of it."""
    here = str(Path(sys.executable).parent)
    return {**accuracy.with_shared(), "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}"}


def found(report: dict[str, Any] | None) -> str:
    """Pattern and cause of a verdict."""
    if report is None:
        return "no report"
    return f"{report['verdict']['pattern']}/{report['verdict'].get('cause') or '-'}"


# ---------------------------------------------------------------- the table


def summary(rows: Sequence[Row]) -> str:
    """How many are right."""
    graded = [row.graded for row in rows]
    count = len(rows)
    culprits = [row.culprit for row in graded if row.culprit is not None]
    return (
        f"{count} programs: pattern {sum(row.pattern for row in graded)}/{count}, "
        f"culprit {sum(culprits)}/{len(culprits)}, outputs the same {sum(row.same for row in rows)}/{count}, "
        f"pattern and cause not found again in the cured program {sum(row.is_cured for row in rows)}/{count}"
    )


def write(page: Path, rows: Sequence[Row]) -> None:
    """Put the table between the marks of the page. ValueError where it has none."""
    text = page.read_text(encoding="utf-8")
    begin = text.index(BEGIN) + len(BEGIN)
    page.write_text(f"{text[:begin]}\n{markdown(rows)}\n{text[text.index(END, begin) :]}", encoding="utf-8")


def markdown(rows: Sequence[Row]) -> str:
    """The totals and a row for each program."""
    lines = [
        f"**{summary(rows)}.**",
        "",
        f"Last measured by `make frameworks-bench` on {describe()}.",
        "",
        "| packages | program | planted | found | pattern | cause | culprit | named | same output | cured | faster |",
        f"| {' | '.join(['---'] * 11)} |",
    ]
    order = [case.name for case in sys.modules["truth"].CASES]
    for row in sorted(rows, key=lambda row: order.index(row.graded.name)):
        graded = row.graded
        marks = " | ".join(map(accuracy_table.mark, (graded.pattern, graded.cause, graded.culprit)))
        lines.append(
            f"| {row.packages} | {graded.name} | {graded.truth} | {graded.found} | {marks} | `{graded.named}` "
            f"| {accuracy_table.mark(row.same)} | {row.cured} | {accuracy_table.number(graded.speedup)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
