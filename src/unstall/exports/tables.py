"""Every step of a run as a table: CSV by the standard library, Parquet by PyArrow."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from unstall.records.archive import Archive
from unstall.records.vocabulary import in_order

_MISSING = 'Parquet needs PyArrow; run: pip install "unstall[parquet]"'


def write_csv(archive: Archive, path: Path) -> None:
    """Write the steps as CSV. Raises RuntimeError where the run has none, OSError where they cannot be written."""
    table = columns(archive)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*[_cells(column) for column in table.values()]))


def write_parquet(archive: Archive, path: Path) -> None:
    """Write the steps as Parquet. Raises as :func:`write_csv`, and RuntimeError without PyArrow."""
    table = columns(archive)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise RuntimeError(_MISSING) from error
    pyarrow.parquet.write_table(pyarrow.table(table), path, compression="zstd")


def columns(archive: Archive) -> dict[str, np.ndarray]:
    """A column a quantity, a row a step. Times are seconds; ``start_s`` counts from the start of the run."""
    steps = archive.steps
    if steps is None:
        raise RuntimeError(f"the run {archive.report.run.id} has no steps to export")
    table = {
        "step": np.arange(steps.first, steps.first + len(steps)),
        "start_s": steps.starts - archive.began,
        "duration_s": steps.durations,
        "measured": steps.measured,
        "epoch_boundary": steps.gap,
    }
    return table | {f"{name}_s": steps.phase(name) for name in in_order(steps.phases_f4)}


def _cells(column: np.ndarray) -> list[Any]:
    """Times to the nanosecond, flags as 0 and 1."""
    if column.dtype == bool:
        return column.astype(int).tolist()
    return [f"{value:.9f}" for value in column.tolist()] if column.dtype.kind == "f" else column.tolist()
