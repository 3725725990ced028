"""Measure how often the verdict of `unstall run` is right, over programs with a planted bottleneck.

    make accuracy                                   the zoo in both layouts, and the tables in docs/accuracy.md
    python bench/accuracy.py --layout installed     as packages that a driver of a few lines calls
    python bench/accuracy.py --only leak_graph --no-twin --verbose
    make heldout                                    programs by which no threshold was set
    python bench/accuracy.py --zoo FOLDER           another set: a folder with a truth.py of the same form

    python bench/accuracy.py --replay --results bench/results/accuracy.json       run nothing: totals of kept rows

For each program: whether pattern, cause and culprit are right; the ceiling that the report states next to the true
one, and its expected gain next to the speed-up of the program's fixed twin, which runs right after it. How many truths
lie in the stated intervals is what `calibration` and `usual_remedies` of the patterns are to be fitted to.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuracy_table import Row, claims, format_row, short, summary, write
from freed import log_ratios, ratio, stubbable
from kept_rows import keep, rows_in
from machine import describe, version
from marked import put_between_marks

ROOT = Path(__file__).resolve().parents[1]
ZOO = ROOT / "tests" / "zoo"
"""Also where programs of other folders find what they share."""
LAYOUTS = ("script", "installed")
_LIMIT_S = 240
FREE_SECONDS = 23.0
"""Of a run in which the culprit is free in turns: three free turns or four."""


def main() -> int:
    """Run the cases, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, default=ZOO)
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--layout", default="script", choices=LAYOUTS, help="as scripts, or as an installed package")
    parser.add_argument("--variant", default="slow", choices=("slow", "fast"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument(
        "--no-twin", action="store_true", help="do not run the fixed twin: its figures in --results stay"
    )
    parser.add_argument("--verbose", action="store_true", help="show evidence as well")
    parser.add_argument("--keep", type=Path, help="folder to keep the reports and recordings in, for rediagnose.py")
    parser.add_argument("--results", type=Path, help="keep the rows here, and go on from those of an earlier sitting")
    parser.add_argument("--write", type=Path, help="write the table as Markdown; that of the other layout stays")
    parser.add_argument("--put", type=Path, help="put the table between the marks in this file")
    parser.add_argument("--note", default="", help="a sentence on how these rows were made, for the page")
    parser.add_argument("--replay", action="store_true", help="run nothing: the table and the totals of --results")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    options.zoo = options.zoo.resolve()
    if options.replay:
        return replay(options)
    wanted = set(options.only.split(",")) if options.only else None
    cases = [case for case in load_cases(options.zoo) if wanted is None or case.name in wanted]
    rows = earlier(options.results)
    for case in cases:
        row, report = judge(case, options)
        if options.no_twin and case.name in rows:
            row.speedup, row.free = rows[case.name].speedup, rows[case.name].free
        row.version, row.machine = version("src", str(options.zoo)), describe()
        rows[row.name] = row
        print(format_row(row), flush=True)
        if options.verbose and report:
            show(report)
        # After each, so that a run that is cut off leaves what it found.
        if options.results:
            keep(options.results, rows.values())
        if options.write:
            write(list(rows.values()), options)
    put(list(rows.values()), options)
    print(summary(list(rows.values())))
    print(*claims(list(rows.values())), sep="\n")
    return 0


def replay(options: argparse.Namespace) -> int:
    """The totals, and the table where asked, of rows that an earlier sitting left."""
    rows = list(earlier(options.results).values())
    if options.write:
        write(rows, options)
    put(rows, options)
    print(summary(rows), *claims(rows), sep="\n")
    return 0


def put(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """The short table into the page that keeps a place for it, where one is named."""
    if options.put:
        put_between_marks(options.put, f"bench/accuracy.py --zoo {options.zoo.name}", short(rows, options))


def earlier(results: Path | None) -> dict[str, Row]:
    """The rows that are there already, by program."""
    return {row.name: row for row in rows_in(results, Row)}


def load_cases(zoo: Path) -> Sequence[Any]:
    """The cases of a folder's truth.py."""
    sys.path.insert(0, str(ZOO))
    cases: Sequence[Any] = load("truth", zoo).CASES
    return cases


def installed() -> Any:
    """What makes packages of programs."""
    return load("installed", ZOO)


def load(name: str, folder: Path) -> Any:
    """A module by its file."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def judge(case: Any, options: argparse.Namespace) -> tuple[Row, dict[str, Any] | None]:
    """Diagnose the slow variant, run the fast one, compare with the truth."""
    slow_rate, report = run_slow(case, options, options.layout)
    fast_rate = None if options.no_twin else run_plain(case, "fast", options)
    row = row_of(case, report, options.layout)
    row.speedup = fast_rate / slow_rate if fast_rate and slow_rate else None
    row.free = None if options.no_twin else free_speedup(case, row.named, slow_rate, options)
    return row, report


def row_of(case: Any, report: dict[str, Any] | None, layout: str = "script") -> Row:
    """The verdict on a case beside what was planted; what is measured beside it is left open."""
    truth = f"{case.pattern}/{case.cause or '-'}"
    if report is None:
        return Row(case.name, truth, "no report", False, False, False, "", None, "", None)
    verdict = report["verdict"]
    culprit = verdict.get("culprit") or {}
    named = culprit.get("function") or ""
    in_package = culprit.get("package") == installed().PACKAGE
    right = (case.culprit, *case.also_culprits)
    if layout == "installed" and "<module>" in right:
        right = (*right, "run_training")
    return Row(
        name=case.name,
        truth=truth,
        found=f"{verdict['pattern']}/{verdict.get('cause') or '-'}",
        pattern=verdict["pattern"] in (case.pattern, *case.also_patterns),
        cause=None if case.cause is None else verdict.get("cause") in (case.cause, *case.also_causes),
        culprit=None if case.culprit is None else named in right and in_package == (layout == "installed"),
        named=named,
        headroom=verdict["headroom"],
        confidence=verdict["confidence"],
        speedup=None,
        ceiling=verdict.get("ceiling"),
        expected_gain=verdict.get("expected_gain"),
    )


def command(case: Any, folder: Path, variant: str, seconds: float) -> list[str]:
    """The program's own command line, without Python in front; ``folder``: where its script is."""
    length = ["--steps", str(case.steps)] if case.steps else ["--seconds", str(seconds)]
    return [*case.launch, str(folder / case.script), "--variant", variant, *length, *case.args]


def run_slow(
    case: Any, options: argparse.Namespace, layout: str = "script"
) -> tuple[float | None, dict[str, Any] | None]:
    """Steps per second and report of the slow variant under `unstall run`."""
    with tempfile.TemporaryDirectory() as folder:
        out = (options.keep.resolve() if options.keep else Path(folder)) / f"{case.name}.json"
        scripts, environment = options.zoo, with_shared()
        if options.keep:
            environment["UNSTALL_STATE"] = str(state_of(case, options.keep.resolve()))
        if layout == "installed":
            scripts = Path(folder)
            environment["PYTHONPATH"] = str(installed().install(options.zoo, case.script, scripts))
        words = command(case, scripts, options.variant, options.seconds)
        line = [sys.executable, "-m", "unstall", "run", "--json", str(out), "--", *words]
        result = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=_LIMIT_S)
        if not out.exists():
            print(result.stderr[-2000:], file=sys.stderr)
            return None, None
        return rate(result.stdout), json.loads(out.read_text())


def state_of(case: Any, folder: Path) -> Path:
    """Where the recording of a case's run is kept, for rediagnose.py."""
    return folder / f"state-{case.name}"


def with_shared() -> dict[str, str]:
    """The environment in which programs find what they share."""
    return {**os.environ, "PYTHONPATH": str(ZOO)}


def run_plain(case: Any, variant: str, options: argparse.Namespace) -> float | None:
    """Steps per second of the fixed twin, or of the one whose culprit takes no time."""
    words = command(case, options.zoo, variant, options.seconds * 0.6)
    if case.launch:
        words[0] = str(Path(sys.executable).with_name(words[0]))
    line = words if case.launch else [sys.executable, *words]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(line, cwd=folder, env=with_shared(), capture_output=True, text=True, timeout=_LIMIT_S)
    return rate(result.stdout)


def free_speedup(case: Any, named: str, slow_rate: float | None, options: argparse.Namespace) -> float | None:
    """The true ceiling: how much faster the program is while its culprit takes no time.

    None where nobody can say, or another function is named: the ceiling is of that one.
    """
    if case.free:
        free_rate = run_plain(case, "free", options)
        return free_rate / slow_rate if free_rate and slow_rate else None
    if not stubbable(case) or named.rpartition(".")[2] != case.culprit.rpartition(".")[2]:
        return None
    mean, _, _ = ratio(log_ratios(case.culprit, command(case, options.zoo, "slow", FREE_SECONDS)))
    return mean


def rate(output: str) -> float | None:
    """The last `steps_per_s=` that a program printed."""
    found = re.findall(r"steps_per_s=([0-9.]+)", output)
    return float(found[-1]) if found else None


def show(report: dict[str, Any]) -> None:
    """What a verdict rests on."""
    phases = ", ".join(f"{phase['name']} {phase['share']:.0%}" for phase in report["phases"])
    print(f"    steps {report['run']['steps']} warm-up {report['run']['warmup_steps']}; {phases}")
    for finding in report["findings"]:
        culprit = finding.get("culprit") or {}
        print(
            f"    {finding['pattern']}/{finding.get('cause')} {finding['headroom']:.2f} {finding['confidence']}"
            f" {culprit.get('function')}:{culprit.get('line')} {culprit.get('via', '')}"
        )
        for line in finding["evidence"]:
            print(f"        {line}")
    for line in report["run"].get("notes", []):
        print(f"    note: {line}")


if __name__ == "__main__":
    sys.exit(main())
