"""`unstall next`: go on, or good enough?"""

from __future__ import annotations

import sys
from typing import NoReturn

import msgspec
import typer
from rich.console import Console

from unstall.benchmark import archive
from unstall.benchmark.archive import ArchiveError
from unstall.cli import amounts
from unstall.repeat import ledger as ledgers
from unstall.repeat.database import LedgerError
from unstall.report import next_view

_WIDTH = 100


def next_(
    program: str = typer.Argument(None, metavar="[PROGRAM]", help="Script or module; the last one run if not given."),
    price: str | None = typer.Option(None, "--price", help="What an hour of the machine costs, e.g. 2.5/h."),
    hours: float | None = typer.Option(None, "--hours", min=0, help="Hours a week it runs; by the ledger if not set."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    ledger: str | None = typer.Option(None, "--ledger", envvar=ledgers.VARIABLE, help="A file, or postgresql://..."),
) -> None:
    """Say whether it is good enough: the gap left, what the last changes brought, what the best remedy would save."""
    hourly = amounts.hourly(price) if price else None
    from unstall.repeat import noise, stopping

    try:
        entries = ledgers.history(ledger)
        chosen = [entry for entry in entries if program in (None, entry.program)]
        chosen = [entry for entry in chosen if entry.program == chosen[-1].program]
        if not chosen:
            _fail(f"no run of {program} yet" if program else "no runs yet; make one with: unstall run train.py")
        report = archive.load(stopping.most_telling(chosen).directory).report
    except (LedgerError, ArchiveError) as error:
        _fail(str(error))
    spread = noise.of_runs(entries)
    found = stopping.judge(
        chosen, report, noise=spread.deviation if spread else 0.0, price=hourly, hours_per_week=hours
    )
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        next_view.render(found, Console(width=_WIDTH if not sys.stdout.isatty() else None, highlight=False))


def _fail(message: str) -> NoReturn:
    print(f"unstall: {message}", file=sys.stderr)
    raise typer.Exit(2)
