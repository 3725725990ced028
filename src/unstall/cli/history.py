"""`unstall history`: every run of this project."""

from __future__ import annotations

import shlex
import sys

import msgspec
import typer
from rich.console import Console

from unstall.repeat import ledger as ledgers
from unstall.repeat.database import LedgerError
from unstall.report import history_view

_WIDTH = 120


def history(
    words: list[str] = typer.Argument(None, metavar="[WORD]...", help="Only runs whose command has these words."),
    most: int = typer.Option(20, "-n", "--most", min=1, help="Show the latest so many."),
    everything: bool = typer.Option(False, "--all", help="All projects of the ledger, not only this one."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, all there is known of each run."),
    ledger: str | None = typer.Option(
        None, "--ledger", envvar=ledgers.VARIABLE, help="A file, or postgresql://...; otherwise .unstall/ledger.sqlite."
    ),
) -> None:
    """List the runs of this project: when, of which code, how fast, the verdict, the gap that is left."""
    try:
        entries = ledgers.history(ledger, everything=everything)
    except LedgerError as error:
        print(f"unstall: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    found = [entry for entry in entries if all(word in shlex.join(entry.command) for word in words or [])][-most:]
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    elif not entries:
        print("unstall: no runs yet; make one with: unstall run train.py", file=sys.stderr)
    elif not found:
        print(f"unstall: none of the {len(entries)} runs has {shlex.join(words)} in its command", file=sys.stderr)
    else:
        console = Console(width=_WIDTH if not sys.stdout.isatty() else None, highlight=False)
        history_view.page(found, console.width).show(console)
