"""Parquet: one row a step of a run, or one row an event of a GPU trace, whose words are stored once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.exports.events import event_columns
from unstall.exports.exporter import Exporter
from unstall.exports.steps import step_columns
from unstall.records.archive import Archive

if TYPE_CHECKING:
    from unstall.trace.timeline import Timeline


class Parquet(Exporter):
    """A table, written by PyArrow or, where that is missing, by polars."""

    name = "parquet"
    help = "Write every step (of a GPU trace: every event) as Parquet."
    metavar = "FILE"
    takes = ("archive", "timeline")
    extra = "parquet"

    def export(self, source: Archive | Timeline, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Write the table."""
        try:
            _write_with_pyarrow(source, Path(target))
        except ImportError as missing:
            try:
                _write_with_polars(source, Path(target))
            except ImportError:
                raise missing from None


EXPORTER = Parquet()


def _write_with_pyarrow(source: Archive | Timeline, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    def category(words: list[str], numbers: Any) -> Any:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers), pyarrow.array(words))

    columns = step_columns(source) if isinstance(source, Archive) else event_columns(source, category)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")


def _write_with_polars(source: Archive | Timeline, path: Path) -> None:
    import polars

    from unstall.trace.frames import Words, frame

    if isinstance(source, Archive):
        polars.DataFrame(step_columns(source)).write_parquet(path)
    else:
        frame(event_columns(source, Words)).write_parquet(path)
