"""Comma-separated values, one row an event."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from unstall.trace.export.rows import COLUMNS, event_columns
from unstall.trace.timeline import Timeline

ROWS = 100_000
"""Rows that are Python objects at a time."""


def write(timeline: Timeline, path: Path) -> None:
    """Columns as in export/rows.py, with a header."""
    columns = event_columns(timeline, lambda words, numbers: (np.array(words, object), numbers))
    count = len(columns["start_ns"])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for at in range(0, count, ROWS):
            writer.writerows(zip(*(_values(columns[name], at) for name in COLUMNS)))


def _values(column: Any, at: int) -> Any:
    if isinstance(column, tuple):
        words, numbers = column
        return words[numbers[at : at + ROWS]].tolist()
    return column[at : at + ROWS].tolist()
