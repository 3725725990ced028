"""``unstall next``: is the program fast enough, or is there more to gain?"""

from __future__ import annotations

import click

from unstall.cli import options
from unstall.cli.outputs import Outputs, deliver
from unstall.cli.parsers import PRICE


@options.command("next", short_help="Say whether the program is fast enough.")
@click.argument("program", metavar="[PROGRAM]", required=False)
@click.option("--price", type=PRICE, help="Price of one machine hour: 2.5/h.")
@click.option(
    "--hours", type=click.FloatRange(0), metavar="H", help="Hours per week that it runs (default: from the history)."
)
@options.outputs()
@options.ledger
def verb(program: str | None, price: float | None, hours: float | None, outputs: Outputs, ledger: str | None) -> int:
    """Say whether more tuning pays: the gap left, what the last changes gained, what the best remedy would save.

    PROGRAM is a script or module; the one that ran last if not given.
    """
    from unstall.report import next_view, wording
    from unstall.runs import history

    stopping, report = history.judge(program, ledger, price=price, hours_per_week=hours)
    answer = next_view.NextAnswer(stopping, wording.next_command(report), price)
    return deliver(next_view, answer, outputs, record=stopping)
