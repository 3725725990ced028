"""The ledger as a table: a line a run, and for each program how its speed went from run to run."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.text import Text

from unstall.records.vocabulary import HEALTHY
from unstall.report.layout import Page, sparkline
from unstall.report.markdown import MarkdownPage
from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten

if TYPE_CHECKING:
    from unstall.records.comparison import Entry

_PROGRAM_CELLS = 28
_VERDICT_CELLS = 30
_COLUMNS = (
    ("run", "l"),
    ("when", "l"),
    ("code", "l"),
    ("program", "l"),
    ("steps/s", "r"),
    ("verdict", "l"),
    ("gap", "r"),
    ("host", "l"),
)
"""Names and alignment; the host is left out where there is only one."""


def page(entries: Sequence[Entry], width: int = 120) -> Page:
    """The runs, oldest first, then a line for each program, for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), entries)


def markdown(entries: Sequence[Entry]) -> str:
    """The same for a pull request."""
    return _fill(MarkdownPage(), entries).as_text()


def _fill(page: Page, entries: Sequence[Entry]) -> Page:
    columns = _COLUMNS if len({entry.host for entry in entries}) > 1 else _COLUMNS[:-1]
    rows = [_cells(entry)[: len(columns)] for entry in entries]
    page.columns([name for name, _ in columns], rows, "".join(side for _, side in columns))
    page.blank()
    for program, speeds in _speeds(entries).items():
        if len(speeds) > 1:
            change = units.factor(speeds[-1] / speeds[0])
            figures = f"{units.number(speeds[0])} → {units.rate(speeds[-1], 'steps')} ({change}) in {len(speeds)} runs"
            page.line(Text.assemble((program, "bold"), "  ", (sparkline(speeds), "cyan"), "  ", figures))
    return page


def _speeds(entries: Sequence[Entry]) -> dict[str, list[float]]:
    """Steps a second of each program's runs, oldest first."""
    by_program: defaultdict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if units.known(entry.steps_per_s) and entry.steps_per_s > 0:
            by_program[shorten(sanitize_line(entry.program), _PROGRAM_CELLS)].append(entry.steps_per_s)
    return by_program


def _cells(entry: Entry) -> list[Text]:
    verdict = f"{entry.pattern} ({entry.cause})" if entry.cause else entry.pattern
    if entry.kind != "run":
        verdict = f"{entry.kind}: {verdict}"
    if entry.exit_code not in (0, None):
        verdict += f", exit {entry.exit_code}"
    code = sanitize_line(entry.code).partition("+")
    return [
        Text(sanitize_line(entry.id)[-6:], "bold"),
        Text(_when(entry.started)),
        Text.assemble(code[0], ("*", "yellow") if code[1] else ""),
        Text(_program(entry)),
        Text(units.number(entry.steps_per_s) if units.known(entry.steps_per_s) else "–"),
        Text(shorten(sanitize_line(verdict), _VERDICT_CELLS), "green" if entry.pattern == HEALTHY else ""),
        Text(units.percent(entry.gap) if units.known(entry.gap) else "–"),
        Text(shorten(sanitize_line(entry.host), 20), "dim"),
    ]


def _when(started: str) -> str:
    """As "21 Nov 11:14", local time; as it is if it is no time."""
    try:
        return f"{datetime.fromisoformat(started.replace('Z', '+00:00')).astimezone():%d %b %H:%M}"
    except ValueError:
        return shorten(sanitize_line(started), 12)


def _program(entry: Entry) -> str:
    return shorten(sanitize_line(shlex.join(entry.command)), _PROGRAM_CELLS)
