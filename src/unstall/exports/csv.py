"""Comma-separated values: one row a step of a run, or one row an event of a GPU trace."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.exports.events import event_columns
from unstall.exports.exporter import Exporter
from unstall.exports.steps import step_columns
from unstall.records.archive import Archive

if TYPE_CHECKING:
    from unstall.trace.timeline import Timeline

_CHUNK_ROWS = 100_000
"""Rows that are Python objects at a time."""


class Csv(Exporter):
    """A table with a header, by the standard library."""

    name = "csv"
    help = "Write every step (of a GPU trace: every event) as CSV."
    metavar = "FILE"
    takes = ("archive", "timeline")

    def export(self, source: Archive | Timeline, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Write the table."""
        columns = step_columns(source) if isinstance(source, Archive) else event_columns(source, _Category)
        with Path(target).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(_rows(list(columns.values())))


EXPORTER = Csv()


class _Category:
    """A column of few distinct words, each stored once."""

    def __init__(self, words: Sequence[str], numbers: Any) -> None:
        import numpy as np

        self.words, self.numbers = np.array(words, object), numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice) -> Any:
        return self.words[self.numbers[rows]]


def _rows(columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for first in range(0, len(columns[0]), _CHUNK_ROWS):
        yield from zip(*(_cells(column[first : first + _CHUNK_ROWS]) for column in columns))


def _cells(column: Any) -> list[Any]:
    """Times to the nanosecond, flags as 0 and 1."""
    if column.dtype.kind == "b":
        return column.astype(int).tolist()
    return [f"{value:.9f}" for value in column.tolist()] if column.dtype.kind == "f" else column.tolist()
