"""Measure how often the verdict of `unstall run` is right, over programs with a planted bottleneck.

    make accuracy                                   the zoo, and the table in docs/accuracy.md
    python bench/accuracy.py --only leak_graph --no-twin --verbose
    python bench/accuracy.py --zoo FOLDER           another set: a folder with a truth.py of the same form

For each program: whether pattern, cause and culprit are right, and the headroom that the report states next to the
true speed-up of the program's fixed twin, which runs right after it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import describe

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "bench" / "results" / "simplify.json"
"""What `make simplify-bench` found last."""
_LIMIT_S = 240


@dataclass
class Row:
    """The verdict on one program beside the truth."""

    name: str
    truth: str
    found: str
    pattern: bool
    cause: bool | None
    culprit: bool | None
    named: str
    headroom: float | None
    confidence: str
    speedup: float | None


def main() -> int:
    """Run the cases, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, default=ROOT / "tests" / "zoo")
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--variant", default="slow", choices=("slow", "fast"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--no-twin", action="store_true", help="do not run the fixed twin")
    parser.add_argument("--verbose", action="store_true", help="show evidence as well")
    parser.add_argument("--keep", type=Path, help="folder to keep the JSON reports in")
    parser.add_argument("--results", type=Path, help="keep the rows here, and go on from those of an earlier sitting")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    wanted = set(options.only.split(",")) if options.only else None
    cases = [case for case in load_cases(options.zoo) if wanted is None or case.name in wanted]
    rows = earlier(options.results)
    for case in cases:
        row, report = judge(case, options)
        rows[row.name] = row
        print(format_row(row), flush=True)
        if options.verbose and report:
            show(report)
        # After each, so that a run that is cut off leaves what it found.
        if options.results:
            options.results.write_text(json.dumps([asdict(each) for each in rows.values()]), encoding="utf-8")
        if options.write:
            options.write.write_text(markdown(list(rows.values()), options), encoding="utf-8")
    print(summary(list(rows.values())))
    return 0


def earlier(results: Path | None) -> dict[str, Row]:
    """The rows that are there already, by program."""
    if results is None or not results.exists():
        return {}
    return {fields["name"]: Row(**fields) for fields in json.loads(results.read_text(encoding="utf-8"))}


def load_cases(zoo: Path) -> Sequence[Any]:
    """The cases of a folder's truth.py."""
    spec = importlib.util.spec_from_file_location("truth", zoo / "truth.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["truth"] = module
    spec.loader.exec_module(module)
    cases: Sequence[Any] = module.CASES
    return cases


def judge(case: Any, options: argparse.Namespace) -> tuple[Row, dict[str, Any] | None]:
    """Diagnose the slow variant, run the fast one, compare with the truth."""
    slow_rate, report = run_slow(case, options)
    fast_rate = None if options.no_twin else run_fast(case, options)
    truth = f"{case.pattern}/{case.cause or '-'}"
    speedup = fast_rate / slow_rate if fast_rate and slow_rate else None
    if report is None:
        return Row(case.name, truth, "no report", False, False, False, "", None, "", speedup), None
    verdict = report["verdict"]
    culprit = verdict.get("culprit") or {}
    named = culprit.get("function") or ""
    row = Row(
        name=case.name,
        truth=truth,
        found=f"{verdict['pattern']}/{verdict.get('cause') or '-'}",
        pattern=verdict["pattern"] in (case.pattern, *case.also_patterns),
        cause=None if case.cause is None else verdict.get("cause") in (case.cause, *case.also_causes),
        culprit=None if case.culprit is None else named in (case.culprit, *case.also_culprits),
        named=named,
        headroom=verdict["headroom"],
        confidence=verdict["confidence"],
        speedup=speedup,
    )
    return row, report


def command(case: Any, zoo: Path, variant: str, seconds: float) -> list[str]:
    """The program's own command line, without Python in front."""
    return [*case.launch, str(zoo / case.script), "--variant", variant, "--seconds", str(seconds), *case.args]


def run_slow(case: Any, options: argparse.Namespace) -> tuple[float | None, dict[str, Any] | None]:
    """Steps per second and report of the slow variant under `unstall run`."""
    with tempfile.TemporaryDirectory() as folder:
        out = (options.keep or Path(folder)) / f"{case.name}.json"
        words = command(case, options.zoo, options.variant, options.seconds)
        line = [sys.executable, "-m", "unstall", "run", "--json", str(out), "--", *words]
        result = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S)
        if not out.exists():
            print(result.stderr[-2000:], file=sys.stderr)
            return None, None
        return rate(result.stdout), json.loads(out.read_text())


def run_fast(case: Any, options: argparse.Namespace) -> float | None:
    """Steps per second of the fixed twin, plain."""
    words = command(case, options.zoo, "fast", options.seconds * 0.6)
    if case.launch:
        words[0] = str(Path(sys.executable).with_name(words[0]))
    line = words if case.launch else [sys.executable, *words]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S)
    return rate(result.stdout)


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


def mark(right: bool | None) -> str:
    """A cell of the table."""
    return "·" if right is None else "✓" if right else "✗"


def format_row(row: Row) -> str:
    """One line for the terminal."""
    return (
        f"{mark(row.pattern)}{mark(row.cause)}{mark(row.culprit)} {row.name:26} {row.truth:28} {row.found:28} "
        f"{row.named[:34]:34} {number(row.headroom)} / {number(row.speedup)} {row.confidence}"
    )


def number(value: float | None) -> str:
    """A factor."""
    return "  – " if value is None else f"{value:.2f}×"


def share(rights: Sequence[bool | None]) -> str:
    """Of those that have a truth, how many are right."""
    known = [right for right in rights if right is not None]
    return f"{sum(known)}/{len(known)} ({sum(known) / max(len(known), 1):.0%})"


def summary(rows: Sequence[Row]) -> str:
    """The totals."""
    return (
        f"pattern {share([row.pattern for row in rows])}, cause {share([row.cause for row in rows])}, "
        f"culprit {share([row.culprit for row in rows])}"
    )


def experiments() -> dict[str, dict[str, Any]]:
    """The rows of the experiments' bench, by program."""
    if not EXPERIMENTS.exists():
        return {}
    return {row["name"]: row for row in json.loads(EXPERIMENTS.read_text(encoding="utf-8"))}


def markdown(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """The table for docs/."""
    tried = experiments()
    lines = [
        "# Accuracy",
        "",
        "How often the verdict of `unstall run` is right, over programs with a planted bottleneck.",
        "",
        f"**{summary(rows)}.**",
        "",
        f"Measured by `make accuracy` on {describe()}. Each program ran for {options.seconds:g} s",
        f"under `unstall run`, then its fixed twin for {options.seconds * 0.6:g} s without.",
        "",
        "- **headroom**: how many times faster the report says the step could get without the culprit.",
        "- **measured**: what `unstall simplify` measured without the culprit, for culprits that can be stubbed",
        "  ([make simplify-bench](simplify-accuracy.md)); **predicted**: what the pipeline model expected of that.",
        "- **true**: the rate of the fixed twin over that of the slow program. It differs from the headroom where the",
        "  fix leaves part of the culprit's time, or also makes something else cheaper.",
        "",
        "| program | planted | found | pattern | cause | culprit | named | headroom | measured | predicted | true |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.truth} | {row.found} | {mark(row.pattern)} | {mark(row.cause)} "
            f"| {mark(row.culprit)} "
            f"| `{row.named}` | {number(row.headroom)} | {number(tried.get(row.name, {}).get('measured'))} "
            f"| {number(tried.get(row.name, {}).get('predicted'))} | {number(row.speedup)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
