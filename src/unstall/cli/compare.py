"""``unstall compare``: what changed between two recorded runs."""

from __future__ import annotations

import click

from unstall.cli import options
from unstall.cli.exits import warn
from unstall.cli.outputs import Outputs, deliver


@options.command("compare", short_help="Show what changed between two runs.", epilog=options.RUN)
@click.argument("a", metavar="[RUN_A]", required=False)
@click.argument("b", metavar="[RUN_B]", required=False)
@options.outputs()
@options.ledger
def verb(a: str | None, b: str | None, outputs: Outputs, ledger: str | None) -> int:
    """Show what changed from run A to run B: speed with its interval, phases, culprits, code.

    Compares the last two runs if none is named, and a run with the last one if only one is.
    """
    from unstall.report import compare_view
    from unstall.runs import history

    comparison, problem = history.compare(a, b, ledger)
    if problem:
        warn(problem)
    return deliver(compare_view, comparison, outputs)
