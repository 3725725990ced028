"""Comma-separated values: one row a step of a run, or one row an event of a GPU trace."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from unstall.exports.exporter import Exporter
from unstall.exports.tables import event_columns, rows, step_columns
from unstall.records.archive import Archive
from unstall.trace.timeline import Timeline


class Csv(Exporter):
    """A table with a header, by the standard library."""

    name = "csv"
    help = "Write every step (of a GPU trace: every event) as CSV."
    metavar = "FILE"
    takes = ("archive", "timeline")

    def export(self, source: Archive | Timeline, target: str, flags: frozenset[str] = frozenset()) -> None:
        columns = step_columns(source) if isinstance(source, Archive) else _spelled_out(event_columns(source))
        with Path(target).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(rows(columns.values(), _cells))


EXPORTER = Csv()


def _spelled_out(columns: dict[str, Any]) -> dict[str, np.ndarray]:
    """Words in the place of their numbers; each is one object, however many rows have it."""
    return {
        name: column if isinstance(column, np.ndarray) else np.array(column.words, object)[column.numbers]
        for name, column in columns.items()
    }


def _cells(column: np.ndarray) -> list[Any]:
    """Times to the nanosecond, flags as 0 and 1."""
    if column.dtype.kind == "b":
        return column.astype(int).tolist()
    return [f"{value:.9f}" for value in column.tolist()] if column.dtype.kind == "f" else column.tolist()
