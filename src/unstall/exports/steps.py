"""Every step of a run as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstall.exports.exporter import ExportError
from unstall.records.archive import Archive
from unstall.records.vocabulary import in_order

if TYPE_CHECKING:
    import numpy as np


def step_columns(archive: Archive) -> dict[str, np.ndarray]:
    """A column a quantity, a row a step. Times are seconds; ``start_s`` counts from the start of the run.

    Raises ExportError where the run has no steps.
    """
    import numpy as np

    steps = archive.steps
    if steps is None:
        raise ExportError(f"the run {archive.report.run.id} has no steps to export")
    table = {
        "step": np.arange(steps.first, steps.first + len(steps)),
        "start_s": steps.starts - archive.began,
        "duration_s": steps.durations,
        "measured": steps.measured,
        "epoch_boundary": steps.gap,
    }
    return table | {f"{name}_s": steps.phase(name) for name in in_order(steps.phases_f4)}


def measured_seconds(archive: Archive) -> list[float]:
    """Seconds of each measured step; none where no step was seen."""
    return archive.steps.durations[archive.steps.measured].tolist() if archive.steps else []
