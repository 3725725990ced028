"""``unstall attach``: a verdict on a program that runs already, from outside."""

from __future__ import annotations

import click

from unstall.cli import options
from unstall.cli.outputs import Outputs, deliver
from unstall.cli.parsers import TIME
from unstall.report.progress import Progress


@options.command("attach", short_help="Look at a running program and say what stalls it.")
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@click.option("--duration", type=TIME, default="20s", help="Observe the program for at most this long.")
@options.outputs()
def verb(pid: int, duration: float, outputs: Outputs) -> int:
    """Say what stalls a program that is already running, or where it hangs, without injecting code.

    PID is the program's, or its launcher's (torchrun): all ranks below it are looked at.
    """
    from unstall.report import attach_view
    from unstall.runs import attach

    with Progress() as progress:
        report = attach.attach(pid, duration, progress)
    return deliver(attach_view, report, outputs)
