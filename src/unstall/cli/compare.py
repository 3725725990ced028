"""`unstall compare`: what changed between two recorded runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console

from unstall.benchmark import archive, rundir
from unstall.benchmark.archive import ArchiveError
from unstall.cli.ending import fail
from unstall.repeat import ledger as ledgers
from unstall.repeat import noise
from unstall.repeat.database import LedgerError
from unstall.report import compare_view
from unstall.text.sanitize import plain

if TYPE_CHECKING:
    from unstall.repeat.noise import Noise

_WIDTH = 100


def compare(
    a: str = typer.Argument(None, metavar="[A]", help="A run: id, beginning or end of one, `last`, folder or file."),
    b: str = typer.Argument(None, metavar="[B]", help="Another; the last run if only one is given."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    markdown: Path | None = typer.Option(None, "--markdown", "--md", help="Write it as Markdown."),
    ledger: str | None = typer.Option(None, "--ledger", envvar=ledgers.VARIABLE, help="A file, or postgresql://..."),
) -> None:
    """Say what changed between two runs, the last two if none is named: speed with interval, phases, culprits, code."""
    from unstall.repeat.comparison import compare as compare_archives

    try:
        first, second = (archive.load(name) for name in _two(a, b))
        if first.report.run.id == second.report.run.id:
            raise LookupError(
                f"A and B are the same run, {plain(first.report.run.id)}: name two; see `unstall history`"
            )
        found = compare_archives(first, second, _noise(ledger))
        if markdown:
            markdown.write_text(compare_view.markdown(found), encoding="utf-8")
    except (ArchiveError, LookupError) as error:
        fail(str(error.args[0]))
    except OSError as error:
        fail(f"{markdown} was not written: {error.strerror}")
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        console = Console(width=_WIDTH if not sys.stdout.isatty() else None, highlight=False)
        compare_view.page(found, console.width).show(console)


def _two(a: str | None, b: str | None) -> tuple[str, str]:
    if a is not None:
        return a, b or "last"
    # A report alone has no steps to compare.
    runs = [run for run in rundir.kept(finished=True) if (run / archive.FILE_NAME).exists()]
    if len(runs) < 2:
        raise LookupError("there are no two runs to compare here yet; make them with: unstall run train.py")
    return runs[-2].name, runs[-1].name


def _noise(ledger: str | None) -> Noise | None:
    """From the ledger; a comparison does without if that cannot be read."""
    try:
        return noise.of_runs(ledgers.history(ledger, most=500))
    except LedgerError as error:
        print(f"unstall: {error}", file=sys.stderr)
        return None
