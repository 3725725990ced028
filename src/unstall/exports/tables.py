"""Runs and GPU traces as tables: columns of arrays, a row a step or a row an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from unstall.exports.exporter import ExportError
from unstall.records.archive import Archive
from unstall.records.vocabulary import in_order
from unstall.trace.timeline import DeviceKind, HostKind, Timeline

_CHUNK_ROWS = 100_000
"""Rows that are Python objects at a time."""


def step_columns(archive: Archive) -> dict[str, np.ndarray]:
    """A column a quantity, a row a step. Times are seconds; ``start_s`` counts from the start of the run.

    Raises ExportError where the run has no steps.
    """
    steps = archive.steps
    if steps is None:
        raise ExportError(f"the run {archive.report.run.id} has no steps to export")
    table = {
        "step": np.arange(steps.first, steps.first + len(steps)),
        "start_s": steps.starts - archive.began,
        "duration_s": steps.durations,
        "measured": steps.measured,
        "epoch_boundary": steps.at_boundary,
    }
    return table | {f"{name}_s": steps.phase(name) for name in in_order(steps.phases_f4)}


def measured_seconds(archive: Archive) -> list[float]:
    """Seconds of each measured step; none where no step was seen."""
    return archive.steps.durations[archive.steps.measured].tolist() if archive.steps else []


def event_columns(timeline: Timeline) -> dict[str, Any]:
    """A column a quantity, a row an event, host and device alike: arrays, and :class:`unstall.trace.frames.Words`.

    ``start_ns`` counts from the start of the trace; -1 stands for none in every column.
    """
    from unstall.trace.frames import Words

    host, device = timeline.host, timeline.device
    pids = np.array([thread.pid for thread in timeline.threads], np.int64)
    tids = np.array([thread.tid for thread in timeline.threads], np.int64)
    kinds = [kind.name.lower() for kind in (*HostKind, *DeviceKind)]

    def joined(of_host: Any, of_device: Any) -> Any:
        return np.concatenate([_filled(of_host, len(host)), _filled(of_device, len(device))])

    return {
        "where": Words(["host", "device"], joined(0, 1)),
        "start_ns": joined(host.start_ns, device.start_ns),
        "dur_ns": joined(host.dur_ns, device.dur_ns),
        "kind": Words(kinds, joined(host.kind.astype(np.int64), device.kind.astype(np.int64) + len(HostKind))),
        "name": Words(timeline.names, joined(host.name, device.name)),
        "pid": joined(pids[host.thread], -1),
        "tid": joined(tids[host.thread], -1),
        "device": joined(-1, device.device),
        "stream": joined(-1, device.stream),
        "correlation": joined(host.correlation, device.correlation),
        "bytes": joined(-1, device.bytes),
    }


def _filled(value: Any, count: int) -> Any:
    return np.full(count, value, np.int64) if isinstance(value, int) else value


def rows(columns: Iterable[np.ndarray], cells: Callable[[np.ndarray], list[Any]] = np.ndarray.tolist) -> Iterator[Any]:
    """The rows as tuples; ``cells`` makes Python objects of a part of a column."""
    columns = list(columns)
    for first in range(0, len(columns[0]), _CHUNK_ROWS):
        yield from zip(*(cells(column[first : first + _CHUNK_ROWS]) for column in columns))
