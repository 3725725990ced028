"""The ledger as a table: a line a run, and for each program how its speed went from run to run."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unstall.report.layout import encodable, show, sparkline
from unstall.text import units
from unstall.text.sanitize import plain, shorten

if TYPE_CHECKING:
    from unstall.records.comparison import Entry

_PROGRAM_CELLS = 28
_VERDICT_CELLS = 30


def render(entries: Sequence[Entry], console: Console) -> None:
    """Print the runs, oldest first, then a line for each program."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    hosts = len({entry.host for entry in entries}) > 1
    for title, right in _columns(hosts):
        table.add_column(title, justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
    for entry in entries:
        table.add_row(*[encodable(cell, console.encoding) for cell in _cells(entry, hosts)])
    console.print(table)
    console.print()
    show(sparklines(entries), console)


def sparklines(entries: Sequence[Entry]) -> list[Text]:
    """One line a program that has run more than once: its speed over the runs, first and last."""
    by_program: defaultdict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if units.known(entry.steps_per_s) and entry.steps_per_s > 0:
            by_program[shorten(plain(entry.program), _PROGRAM_CELLS)].append(entry.steps_per_s)
    lines = []
    for program, speeds in by_program.items():
        if len(speeds) > 1:
            change = units.factor(speeds[-1] / speeds[0])
            figures = (
                f"  {units.number(speeds[0])} → {units.rate(speeds[-1], 'steps')} ({change}) in {len(speeds)} runs"
            )
            lines.append(Text.assemble((program, "bold"), "  ", (sparkline(speeds), "cyan"), figures))
    return lines


def _columns(hosts: bool) -> list[tuple[str, bool]]:
    columns = [("run", False), ("when", False), ("code", False), ("program", False), ("steps/s", True)]
    columns += [("verdict", False), ("gap", True)]
    return [*columns, ("host", False)] if hosts else columns


def _cells(entry: Entry, hosts: bool) -> list[Text]:
    verdict = f"{entry.pattern} ({entry.cause})" if entry.cause else entry.pattern
    if entry.kind != "run":
        verdict = f"{entry.kind}: {verdict}"
    if entry.exit_code not in (0, None):
        verdict += f", exit {entry.exit_code}"
    code = plain(entry.code).partition("+")
    cells = [
        Text(plain(entry.id)[-6:], "bold"),
        Text(_when(entry.started)),
        Text.assemble(code[0], ("*", "yellow") if code[1] else ""),
        Text(_program(entry)),
        Text(units.number(entry.steps_per_s) if units.known(entry.steps_per_s) else "–"),
        Text(shorten(plain(verdict), _VERDICT_CELLS), "green" if entry.pattern == "healthy" else ""),
        Text(units.percent(entry.gap) if units.known(entry.gap) else "–"),
    ]
    return [*cells, Text(shorten(plain(entry.host), 20), "dim")] if hosts else cells


def _when(started: str) -> str:
    """As "21 Nov 11:14", local time; as it is if it is no time."""
    try:
        return f"{datetime.fromisoformat(started.replace('Z', '+00:00')).astimezone():%d %b %H:%M}"
    except ValueError:
        return shorten(plain(started), 12)


def _program(entry: Entry) -> str:
    return shorten(plain(shlex.join(entry.command)), _PROGRAM_CELLS)
