"""`unstall optimize`: try the remedies, keep what is faster and computes the same, hand over a patch."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from unstall.benchmark import command, rundir
from unstall.cli import amounts
from unstall.cli.ending import EXIT_USAGE, fail, need_folders, tidy_up_when_ended, whoever_reads
from unstall.optimize import conclude, program, remedies_file
from unstall.optimize.patch import place, unified
from unstall.optimize.search import Options, Result, Search
from unstall.optimize.trial import TrialFailed
from unstall.optimize.workshop import Workshop
from unstall.repeat import ledger as ledgers
from unstall.report import remedies as view
from unstall.sandbox import SandboxError, open_sandbox

if TYPE_CHECKING:
    from unstall.records.report import Report

_EXIT_FAILED = 1
_WIDTH = 110
_LOAD = 0.3  # cores


def optimize(
    words: list[str] = typer.Argument(None, metavar="PROGRAM [ARGS]...", help="As for `unstall run`."),
    budget: float = typer.Option("15m", "--budget", parser=amounts.seconds, metavar="TIME", help="Time to search for."),
    worth: float = typer.Option(
        "5%", "--worth", parser=amounts.share, metavar="SHARE", help="Stop when the best predicted gain is below this."
    ),
    patch: Path | None = typer.Option(None, "--patch", help="Write the changes as a patch for `git apply`."),
    apply: bool = typer.Option(False, "--apply", help="Change the files: asks first, and keeps a backup of each."),
    with_file: Path | None = typer.Option(
        None, "--remedies", help="Write what can be set at run time, for `unstall run --with FILE`."
    ),
    allow_training_change: bool = typer.Option(
        False, "--allow-training-change", help="Also try remedies that change the training."
    ),
    json: Path | None = typer.Option(None, "--json", help="Write the report as JSON (schema unstall/2)."),
    ledger: str | None = typer.Option(
        None, "--ledger", envvar=ledgers.VARIABLE, help="Keep the history there: a file, or postgresql://..."
    ),
    allow_network_writes: bool = typer.Option(False, "--allow-network-writes", help="Let trials send to the network."),
) -> None:
    """Find the settings and small changes that make a program faster, prove the results the same, write the patch."""
    try:
        found = program.find(words or [])
    except command.CommandError as error:
        fail(str(error))
    need_folders(patch, with_file, json)
    folder = Path(tempfile.mkdtemp(prefix="unstall-optimize-"))
    options = Options(budget_s=budget, worth=worth, allow_training_change=allow_training_change)
    tidy_up_when_ended()
    try:
        with open_sandbox(Path.cwd(), [folder], network_writes=allow_network_writes) as sandbox:
            result = Search(found, Workshop(found.line, folder, sandbox), options, _teller()).run()
            refused = sandbox.refused()
    except SandboxError as error:
        fail(str(error))
    except TrialFailed as error:
        print(f"unstall: {error}", file=sys.stderr)
        raise typer.Exit(_EXIT_FAILED) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result.notes += [f"refused in the trials: {line}" for line in refused]
    made = conclude.report(found, result).with_run(id=rundir.new_id())
    problem = ledgers.keep(made, ledger)
    failures = _give(found, result, made, patch=patch, json=json, with_file=with_file)
    for line in (*([problem] if problem else []), *failures):
        print(f"unstall: {line}", file=sys.stderr)
    if apply:
        _apply(result)
    if failures:
        raise typer.Exit(EXIT_USAGE)


def _give(
    found: program.Program,
    result: Result,
    made: Report,
    *,
    patch: Path | None,
    json: Path | None,
    with_file: Path | None,
) -> list[str]:
    """Write the files that were asked for, and show the report; which files could not be written, and why."""
    difference = unified(result.best.sources, found.root)
    remarks = [f"stopped: {result.why_stopped}", *_where_it_stands(result), *made.run.notes[-3:]]
    written = [(json, made.to_json()), (with_file, remedies_file.written(result.kept).encode())]
    if difference:
        written.append((patch, difference))
    failures = []
    for path, content in written:
        if path is not None:
            try:
                path.write_bytes(content)
            except OSError as error:
                failures.append(f"cannot write {path}: {error.strerror}")
                if path == patch:  # what took a quarter of an hour is not lost with it
                    failures[-1] += ": the patch is on stdout"
                    sys.stdout.buffer.write(content)
    if patch is not None:
        remarks.append(f"git apply {patch}  (from {found.root})" if difference else "there is nothing to patch")
    elif difference:
        remarks.append("--patch FILE writes the changes, --apply makes them")
    interval = (result.total.low, result.total.high) if result.total else None
    console = Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH)
    with whoever_reads(sys.stderr):
        view.render(made, interval, remarks, console)
    return failures


def _where_it_stands(result: Result) -> list[str]:
    """What leads now, and how far the program is from its ceiling."""
    lines = []
    if result.revisits:
        lines.append("the speed-up holds from the second epoch on; the first one still makes what is kept")
    load = max(result.other_cores, default=0.0)
    if load > _LOAD:
        lines.append(
            f"other programs took up to {load:.1f} cores meanwhile: on a quiet machine the intervals are narrower"
        )
    if not result.reproducible:
        lines.append("two runs of the original differ under one seed: exact was judged by that difference")
    verdict = result.last.report.verdict
    if result.kept and verdict.pattern != "healthy":
        culprit = (
            f", {verdict.culprit.function} ({Path(verdict.culprit.file).name}:{verdict.culprit.line})"
            if verdict.culprit
            else ""
        )
        lines.append(f"what leads now: {verdict.pattern}{culprit}; without it another {verdict.headroom:.2g}×")
    return lines


def _apply(result: Result) -> None:
    """Ask, then change the files."""
    changes = list(result.best.sources.differing())
    if not changes:
        return
    names = ", ".join(str(path) for path, _, _ in changes)
    if not typer.confirm(f"change {names}?", err=True):
        raise typer.Exit(0)
    try:
        for path, backup in place.apply(result.best.sources):
            print(f"unstall: changed {path}; it was kept as {backup.name}", file=sys.stderr)
    except OSError as error:
        fail(f"cannot change {error.filename}: {error.strerror}")


def _teller() -> Callable[[str], None]:
    """Tells what is being tried, with the time since the beginning."""
    began = time.monotonic()

    def tell(line: str) -> None:
        print(f"unstall: {time.monotonic() - began:4.0f} s  {line}", file=sys.stderr, flush=True)

    return tell
