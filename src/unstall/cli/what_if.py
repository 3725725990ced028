"""``unstall what-if``: what a change would bring, predicted from a recorded run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from unstall.cli import options
from unstall.cli.outputs import Outputs, deliver


@options.command(
    "what-if",
    short_help="Predict what a change would bring.",
    epilog=options.RUN,
)
@click.argument("run", metavar="RUN")
@click.option("--workers", type=int, metavar="N", help="DataLoader workers.")
@click.option("--prefetch", type=int, metavar="N", help="prefetch_factor per worker.")
@click.option("--in-order/--no-in-order", default=None, help="DataLoader in_order.")
@click.option("--persistent/--no-persistent", default=None, help="DataLoader persistent_workers.")
@click.option("--threads", type=int, metavar="N", help="torch threads per operator.")
@click.option("--cores", type=float, metavar="N", help="Cores of the machine.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=CHANGE",
    help="Change a phase, data, collate, io or a function: 0.5x, -20%, free, async.",
)
@options.outputs()
def verb(run: str, changes: Sequence[str], outputs: Outputs, **settings: Any) -> int:
    """Predict what a change would bring, from a recorded run.

    Without a change, show which changes would bring the most.
    """
    from unstall.report import what_if_view
    from unstall.runs import what_if

    return deliver(what_if_view, what_if.predict(run, changes, **settings), outputs)
