"""Public repositories with a performance fix in their history: is the culprit the maintainers' fix, and do we reach it?

    python bench/real.py --commands                         how to get the repositories
    make real-bench FOLDERS=~/public                        all cases, and the table in docs/real-programs.md
    python bench/real.py ~/public --only recbole-sasrec --no-optimize

A case (real_cases.py) is a repository, the commit before the fix and the fix, and a driver of ours with made data
(bench/real/NAME.py), as a user of the library would write it. The driver prints ``seconds=``, the time of its training.
Each is run in two layouts: from a checkout (the driver lies in the repository), and installed (the package lies in
site-packages). The culprit is right if it lies in a function that the fix changed. The true gain is that of the
fix: before, after, after, before. What `unstall optimize` reaches is measured in the same way with its patch. A fix
that brings nothing has no right verdict: only what is promised for its function is judged.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from kept_rows import keep, rows_in
from marked import put_between_marks
from real_cases import CASES, Case
from real_table import LAYOUTS, WORTHWHILE, Row, line, markdown, sitting, worthwhile

DRIVERS = Path(__file__).with_name("real")
_LIMIT_S = 900
_NEAR = 3
"""Lines between a culprit outside of every function and the change that mends it."""
_SECONDS = re.compile(r"seconds=([0-9.]+)")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ", re.MULTILINE)

Places = Mapping[tuple[str, str], set[int]]
"""(file from the package on, qualified name of a function) → lines of it that the fix changes."""


class DoesNotRun(RuntimeError):
    """A driver, or unstall on it, failed."""


def main() -> int:
    """Run the cases, print the rows, write the table where asked; exit code 1 when a driver does not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="?", help="holds the repositories, named owner+name")
    parser.add_argument("--commands", action="store_true", help="print how to get them, and stop")
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--keep-gains", action="store_true", help="do not time again what --rows has the gain of")
    parser.add_argument("--keep-verdicts", action="store_true", help="measure anew only what optimize reaches")
    parser.add_argument("--no-optimize", dest="optimize", action="store_false")
    parser.add_argument("--budget", default="7m", help="of unstall optimize")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows")
    parser.add_argument("--write", type=Path, help="put the whole table between the marks in this file")
    parser.add_argument("--put", type=Path, help="put the fixes that are worth it between the marks in this file")
    options = parser.parse_args()
    if options.commands or options.folders is None:
        print("\n".join(commands()))
        return 0
    names = options.only.split(",") if options.only else [case.name for case in CASES]
    rows = read_rows(options.rows)
    failed = False
    for case in (case for case in CASES if case.name in names):
        repository = options.folders / case.repository.replace("/", "+")
        if not repository.is_dir():
            print(f"{case.name}: no {repository}; `python bench/real.py --commands` says how to get it")
            continue
        try:
            rows[case.name] = measured(case, repository, options, rows.get(case.name, ()))
        except DoesNotRun as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        print("\n".join(line(row) for row in rows[case.name]), flush=True)
        keep(options.rows, in_order(rows))
    if options.write:
        put_between_marks(options.write, "make real-bench", markdown(in_order(rows)))
    if options.put:
        put_between_marks(options.put, "make real-bench", worthwhile(in_order(rows)))
    return int(failed)


def read_rows(path: Path | None) -> dict[str, list[Row]]:
    """The rows that are kept, by case."""
    rows: dict[str, list[Row]] = {}
    for row in rows_in(path, Row):
        rows.setdefault(row.name, []).append(row)
    return rows


def in_order(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """As real_cases.py lists the cases."""
    return [row for case in CASES for row in rows.get(case.name, ())]


def commands() -> list[str]:
    """Shell lines that get every repository, with its history."""
    lines = [f"pip install {' '.join(sorted({package for case in CASES for package in case.needs}))}"]
    for repository in sorted({case.repository for case in CASES}):
        lines.append(f"git clone https://github.com/{repository} {repository.replace('/', '+')}")
    for case in CASES:
        if case.pull:
            lines.append(f"git -C {case.repository.replace('/', '+')} fetch origin pull/{case.pull}/head")
    return lines


def measured(case: Case, repository: Path, options: argparse.Namespace, earlier: Sequence[Row] = ()) -> list[Row]:
    """Both layouts of a case. ``earlier``: its rows of another sitting; what the fix gains may be kept of them."""
    changed = changed_functions(repository, case)
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before", Path(folder) / "after"
        export(repository, case, case.before, before)
        export(repository, case, case.fixed_in, after)
        layouts = [Layout(case, name, Path(folder)) for name in LAYOUTS]
        if options.keep_verdicts and earlier:
            for row, layout in zip(earlier, layouts):
                search(row, layout, before, options.budget)
            return list(earlier)
        kept = earlier if options.keep_gains else ()
        gain = kept[0].gain if kept else speedup(layouts[-1], before, after)
        rows = [row_of(layout, before, changed, gain, options) for layout in layouts]
        for row, old in zip(rows, kept):
            row.timed = old.timed or old.version
            if not options.optimize:
                row.reached, row.kept, row.tried, row.searched = old.reached, old.kept, old.tried, old.searched
        return rows


class Layout:
    """How the driver and the library lie on disk: together in a checkout, or the library in site-packages."""

    def __init__(self, case: Case, name: str, folder: Path):
        self.case, self.name = case, name
        self.folder = folder / name
        self.packages = self.folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        self.work = self.folder / "work"

    def put(self, tree: Path) -> None:
        """Lay out the driver and the library as it is in a tree."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.name == "checkout":
            shutil.copytree(tree, self.work, symlinks=True)
            subprocess.run(["git", "init", "--quiet"], cwd=self.work, check=True)
        else:
            self.work.mkdir(parents=True)
            self._install(tree)
        shutil.copy(DRIVERS / self.case.driver, self.work / "train.py")
        shutil.copy(DRIVERS / "stand_in.py", self.work)

    def _install(self, tree: Path) -> None:
        package = self.case.package
        about = self.packages / f"{package}-{self.case.version}.dist-info"
        about.mkdir(parents=True)
        about.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {self.case.version}\n", encoding="utf-8"
        )
        about.joinpath("top_level.txt").write_text(f"{package}\n", encoding="utf-8")
        if (tree / package).is_dir():
            shutil.copytree(tree / package, self.packages / package)
        else:
            shutil.copy(tree / f"{package}.py", self.packages)

    def run(self, *words: str) -> str:
        """Standard output of a Python command in the driver's folder; raises DoesNotRun where it fails."""
        path = self.work if self.name == "checkout" else self.packages
        environment = {**os.environ, "PYTHONPATH": str(path), "UNSTALL_STATE": str(self.folder / "state")}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.work, env=environment, capture_output=True, text=True, timeout=_LIMIT_S
        )
        if done.returncode:
            end = done.stderr[-3000:]
            raise DoesNotRun(f"{self.case.name}, {self.name}: {' '.join(words)} ended with {done.returncode}:\n{end}")
        return done.stdout

    def seconds(self) -> float:
        """What the driver says that its training took."""
        return float(_SECONDS.findall(self.run("train.py"))[-1])


def speedup(layout: Layout, before: Path, after: Path) -> float:
    """Seconds of one tree over those of another, in the order before, after, after, before."""
    taken: dict[Path, list[float]] = {before: [], after: []}
    for tree in (before, after, after, before):
        layout.put(tree)
        taken[tree].append(layout.seconds())
    return mean(taken[before]) / mean(taken[after])


def row_of(layout: Layout, tree: Path, changed: Places, gain: float, options: argparse.Namespace) -> Row:
    """The verdict on the program before the fix, and what optimize makes of it."""
    layout.put(tree)
    layout.run("-m", "unstall", "run", "--json", "report.json", "train.py")
    verdict = json.loads((layout.work / "report.json").read_text(encoding="utf-8"))["verdict"]
    culprit = verdict.get("culprit") or {}
    named = is_changed(culprit, changed)
    worthwhile = gain >= WORTHWHILE
    row = Row(
        name=layout.case.name,
        layout=layout.name,
        pattern="/".join(filter(None, (verdict["pattern"], verdict.get("cause")))),
        pattern_right=verdict["pattern"] in layout.case.patterns if worthwhile else None,
        culprit=f"{culprit['function']}, {Path(culprit['file']).name}:{culprit['line']}" if culprit else "",
        culprit_right=named if worthwhile else None,
        named=named,
        version=sitting()[0],
        machine=sitting()[1],
        caller_right=(named or any(is_changed(caller, changed) for caller in culprit.get("callers", ())))
        if worthwhile
        else None,
        confidence=verdict.get("confidence") or "",
        gain=gain,
        timed=sitting()[0],
        expected=verdict.get("expected_gain") or {},
    )
    if options.optimize:
        search(row, layout, tree, options.budget)
    return row


def search(row: Row, layout: Layout, tree: Path, budget: str) -> None:
    """Put what optimize reaches into the row of a checkout: a library that is installed is not the user's to change."""
    if layout.name == "checkout":
        row.reached, row.kept, row.tried = optimized(layout, tree, budget)
        row.searched = sitting()[0]


def optimized(layout: Layout, tree: Path, budget: str) -> tuple[float, list[str], list[str]]:
    """(gain of the patch that optimize writes, measured again; names of what it kept; what became of the rest)."""
    layout.put(tree)
    words = ("optimize", "--budget", budget, "--json", "optimize.json", "--patch", "kept.patch", "train.py")
    try:
        layout.run("-m", "unstall", *words)
    except DoesNotRun as error:  # it says that it cannot: nothing is reached
        return 1.0, [], [str(error).splitlines()[-1]]
    report = json.loads((layout.work / "optimize.json").read_text(encoding="utf-8"))
    kept = [remedy["name"] for remedy in report["remedies"] if remedy["kept"]]
    rest = [remedy for remedy in report["remedies"] if not remedy["kept"]]
    tried = [f"{remedy['name']}: {remedy.get('status') or ''} {remedy.get('why_not') or ''}".strip() for remedy in rest]
    patch = layout.work / "kept.patch"
    if not kept or not patch.exists():
        return 1.0, kept, tried
    patched = layout.folder.parent / "patched"
    text = patch.read_bytes()
    layout.put(tree)  # the patch may change the driver too, which a tree has not
    shutil.copytree(layout.work, patched, ignore=shutil.ignore_patterns(".git"))
    subprocess.run(["git", "apply", "-"], input=text, cwd=patched, check=True)
    taken: dict[bool, list[float]] = {False: [], True: []}
    for with_patch in (False, True, True, False):
        layout.put(tree)
        if with_patch:
            shutil.copytree(patched, layout.work, dirs_exist_ok=True)
        taken[with_patch].append(layout.seconds())
    return mean(taken[False]) / mean(taken[True]), kept, tried


def export(repository: Path, case: Case, commit: str, tree: Path) -> None:
    """The package as it is at a commit."""
    tree.mkdir()
    commit = f"{commit}:{case.folder}" if case.folder else commit
    names = git(repository, "ls-tree", "--name-only", commit).split()
    names = [name for name in names if name in (case.package, f"{case.package}.py")]
    command = ["git", "-C", str(repository), "archive", commit, *names]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)


def changed_functions(repository: Path, case: Case) -> Places:
    """The functions of the package, as they are before, whose code the fix changes; comments and docstrings aside."""
    changed: dict[tuple[str, str], set[int]] = {}
    span = ("diff", "--no-renames", case.before, case.fixed_in)
    for name in git(repository, *span, "--diff-filter=MD", "--name-only").splitlines():
        inside = Path(name).relative_to(case.folder) if Path(name).is_relative_to(case.folder) else None
        if inside is None or inside.suffix != ".py" or inside.with_suffix("").parts[0] != case.package:
            continue
        hunks = [
            (int(first), int(count or 1)) for first, count in _HUNK.findall(git(repository, *span, "-U0", "--", name))
        ]
        lines = {number for first, count in hunks for number in range(first, first + max(1, count))}
        before = functions_of(git(repository, "show", f"{case.before}:{name}"))
        kept = bool(git(repository, "ls-tree", case.fixed_in, "--", name))
        after = functions_of(git(repository, "show", f"{case.fixed_in}:{name}") if kept else "")
        same = {function.name for function in {*before} & {*after}}
        for function, own in by_function(before, lines).items():
            if function not in same:
                changed[inside.as_posix(), function] = own
    return changed


def git(repository: Path, *words: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class Function:
    """A function of a source; two with the same name and code are the same."""

    name: str
    """Qualified by classes and functions around it."""
    code: str
    """Without comments and docstring."""
    first: int = field(compare=False)
    last: int = field(compare=False)


def functions_of(source: str) -> list[Function]:
    """All functions of a source, those inside others too."""
    functions: list[Function] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{prefix}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    if ast.get_docstring(child, clean=False) is not None:
                        child.body = child.body[1:] or [ast.Pass()]
                    end = child.end_lineno or child.lineno
                    functions.append(Function(inner[:-1], ast.unparse(child), child.lineno, end))
            visit(child, inner)

    visit(ast.parse(source), "")
    return functions


def by_function(functions: Sequence[Function], lines: set[int]) -> dict[str, set[int]]:
    """Lines by the name of the innermost function that they are in, ``<module>`` where they are in none."""
    names: dict[str, set[int]] = {}
    for number in lines:
        around = [function for function in functions if function.first <= number <= function.last]
        innermost = min(around, key=lambda function: function.last - function.first, default=None)
        names.setdefault(innermost.name if innermost else "<module>", set()).add(number)
    return names


def is_changed(culprit: Mapping[str, Any], changed: Places) -> bool:
    """Whether a verdict's culprit lies in what the fix changed."""
    if not culprit:
        return False
    function = culprit["function"].replace(".<locals>", "")
    for (file, name), lines in changed.items():
        if culprit["file"].endswith(file) and name == function:
            return name != "<module>" or any(abs(culprit["line"] - number) <= _NEAR for number in lines)
    return False


if __name__ == "__main__":
    sys.exit(main())
