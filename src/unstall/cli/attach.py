"""``unstall attach``: a verdict on a program that runs already, from outside or from inside."""

from __future__ import annotations

import click

from unstall.cli import options
from unstall.cli.exits import Exit
from unstall.cli.outputs import Outputs, deliver
from unstall.cli.parsers import TIME
from unstall.report.progress import Progress
from unstall.runs.errors import Refused


@options.command("attach", short_help="Look at a running program and say what stalls it.")
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@click.option("--duration", type=TIME, default="20s", help="Observe the program for at most this long.")
@click.option("--record", is_flag=True, help="Record inside the program, as `run` does (Python 3.14 and later).")
@options.outputs(html=True)
def verb(pid: int, duration: float, record: bool, outputs: Outputs) -> int:
    """Say what stalls a program that is already running, or where it hangs.

    PID is the program's, or its launcher's (torchrun): all ranks below it are looked at. Without --record, nothing
    is put into the program: it is observed from outside.
    """
    if record:
        return _record(pid, duration, outputs)
    if outputs.html is not None:
        raise Refused("--html is for --record: from outside, too little is seen for a page")
    from unstall.report import attach_view
    from unstall.runs import attach

    with Progress() as progress:
        report = attach.attach(pid, duration, progress)
    return deliver(attach_view, report, outputs)


def _record(pid: int, duration: float, outputs: Outputs) -> int:
    from unstall.cli.recorded import deliver_recording, show_progress
    from unstall.runs import attach

    with Progress() as progress:
        ended = attach.record(pid, duration, lambda session: show_progress(progress, session))
    return Exit.OK if deliver_recording(ended, outputs) else Exit.FAILED
