"""``unstall watch``: a live view of a run in progress, from another terminal; it only reads."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unstall.cli import options
from unstall.cli.outputs import show
from unstall.runs.errors import refusing

if TYPE_CHECKING:
    from unstall.benchmark import live

_PERIOD_S = 0.5
_LINE_EVERY = 10  # looks, where the output is no terminal
_REPORT_WITHIN_S = 15.0


@options.command("watch", short_help="Show a run in progress.")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--once", is_flag=True, help="Show it once and exit.")
def verb(run: str | None, once: bool) -> None:
    """Show a run in progress until it ends: its speed, phases and resources. The run is not disturbed.

    RUN is a run's id, its beginning, or its folder (default: the newest in progress).
    """
    from unstall.benchmark import live

    with refusing(live.NothingToWatch):
        directory = live.find(run)
    live.be_gentle()
    follower = live.RunFollower(directory)
    try:
        if once:
            _once(follower)
            return
        if sys.stdout.isatty():
            _on_terminal(follower)
        else:
            _as_lines(follower)
    except KeyboardInterrupt:
        return  # of the watching; the program goes on
    _show_end(directory)


def _once(follower: live.RunFollower) -> None:
    from unstall.report import watch_view

    follower.look()
    time.sleep(_PERIOD_S)  # speeds take two looks
    show(watch_view, follower.look())


def _on_terminal(follower: live.RunFollower) -> None:
    from rich.console import Console
    from rich.live import Live

    from unstall.report import watch_view

    console = Console()
    view = follower.look()
    with Live(watch_view.page(view, console.width), console=console, auto_refresh=False) as shown:
        while not view.ended:
            time.sleep(_PERIOD_S)
            view = follower.look()
            if not view.ended:
                shown.update(watch_view.page(view, console.width), refresh=True)


def _as_lines(follower: live.RunFollower) -> None:
    from unstall.report import watch_view

    looks = 0
    while not (view := follower.look()).ended:
        if looks % _LINE_EVERY == 1:  # not at the first: speeds take two looks
            click.echo(watch_view.line(view))
        looks += 1
        time.sleep(_PERIOD_S)


def _show_end(directory: Path) -> None:
    """The verdict, as soon as the unstall that recorded the run has written it."""
    report = directory / "report.json"
    deadline = time.monotonic() + _REPORT_WITHIN_S
    while not report.exists() and directory.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    click.echo(f"the run has ended{_verdict(report)}")


def _verdict(report: Path) -> str:
    from unstall.records.report import Report
    from unstall.report import wording

    try:
        return f": {wording.headline(Report.from_json(report.read_bytes()))}\nmore: unstall report {report.parent.name}"
    except (OSError, ValueError):
        return " and left no report"
