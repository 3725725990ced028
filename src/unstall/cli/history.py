"""``unstall history``: every run of this project."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from unstall.cli import options
from unstall.cli.exits import Exit, warn
from unstall.cli.outputs import Outputs, deliver

_WIDTH = 120


@options.command("history", short_help="List the recorded runs of this project.")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@click.option("-n", "--most", type=click.IntRange(1), default=20, metavar="N", help="Show at most N runs.")
@click.option("--all", "everything", is_flag=True, help="Show the runs of all projects in the ledger.")
@options.outputs()
@options.ledger
def verb(words: Sequence[str], most: int, everything: bool, outputs: Outputs, ledger: str | None) -> int:
    """List the runs of this project, oldest first: code, speed, verdict, and the gap to the ceiling.

    With WORDs, only runs that have all of them in their command.
    """
    from unstall.report import history_view
    from unstall.runs import history

    entries = history.entries(ledger, everything=everything)
    shown = history.having(entries, words)[-most:]
    if shown or outputs:
        return deliver(history_view, shown, outputs, width=_WIDTH)
    if entries:
        warn(f"none of the {len(entries)} runs has {shlex.join(words)} in its command")
    else:
        warn("no runs yet; make one with: unstall run train.py")
    return Exit.OK
