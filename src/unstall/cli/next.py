"""`unstall next`: go on, or good enough?"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from unstall.benchmark import archive
from unstall.benchmark.archive import ArchiveError
from unstall.cli import amounts
from unstall.cli.ending import fail
from unstall.records.comparison import Entry
from unstall.repeat import ledger as ledgers
from unstall.repeat.database import LedgerError
from unstall.report import next_view, wording
from unstall.text.sanitize import plain

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
        chosen = _of_program(entries, program)
        report = archive.load(str(_recording(stopping.most_telling(chosen), chosen[-1]))).report
    except (LedgerError, ArchiveError) as error:
        fail(str(error))
    spread = noise.of_runs(entries)
    found = stopping.judge(
        chosen, report, noise=spread.deviation if spread else 0.0, price=hourly, hours_per_week=hours
    )
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        console = Console(width=_WIDTH if not sys.stdout.isatty() else None, highlight=False)
        next_view.page(next_view.NextAnswer(found, wording.next_command(report), hourly), console.width).show(console)


def _of_program(entries: list[Entry], name: str | None) -> list[Entry]:
    """The runs of the program that is meant, the last one's if none is named."""
    programs = list(dict.fromkeys(entry.program for entry in reversed(entries)))
    meant = [one for one in programs if name in (None, one, Path(one).name)]
    if not programs:
        fail("no runs yet; make one with: unstall run train.py")
    if not meant:
        fail(f"no run of {name} yet; there are runs of {plain(', '.join(programs[:5]))}")
    return [entry for entry in entries if entry.program == meant[0]]


def _recording(*entries: Entry) -> Path:
    """Where the first of these that is still here is kept."""
    for entry in entries:
        if os.path.isdir(entry.directory):
            return Path(entry.directory)
    elsewhere = entries[-1].host != platform.node()
    where = f"is on {plain(entries[-1].host)}" if elsewhere else "was removed"
    fail(f"the recording of the last run {where}; run the program again: unstall run ...")
