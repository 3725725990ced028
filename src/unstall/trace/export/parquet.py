"""Parquet, one row an event; words are stored once."""

from __future__ import annotations

from pathlib import Path

from unstall.trace.export.rows import event_columns
from unstall.trace.frames import Words, frame
from unstall.trace.timeline import Timeline


def write(timeline: Timeline, path: Path) -> None:
    """Columns as in export/rows.py. Where only pandas is installed it needs pyarrow, and says so."""
    table = frame(event_columns(timeline, Words))
    if hasattr(table, "write_parquet"):
        table.write_parquet(path)
    else:
        table.to_parquet(path)
