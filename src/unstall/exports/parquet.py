"""Parquet: one row a step of a run, or one row an event of a GPU trace, whose words are stored once."""

from __future__ import annotations

from unstall.exports.exporter import Exporter
from unstall.exports.tables import event_columns, step_columns
from unstall.records.archive import Archive
from unstall.trace.timeline import Timeline


class Parquet(Exporter):
    """A table, written by polars."""

    name = "parquet"
    help = "Write every step (of a GPU trace: every event) as Parquet."
    metavar = "FILE"
    takes = ("archive", "timeline")
    extra = "parquet"

    def export(self, source: Archive | Timeline, target: str, flags: frozenset[str] = frozenset()) -> None:
        import polars

        from unstall.trace.frames import frame

        table = polars.DataFrame(step_columns(source)) if isinstance(source, Archive) else frame(event_columns(source))
        table.write_parquet(target)


EXPORTER = Parquet()
