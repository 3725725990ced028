"""What is kept of every rank of a run: little enough for hundreds, whatever the size of their files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unstall.trace.metrics import TimelineMetrics
from unstall.trace.timeline import Ints, Timeline

Key = tuple[str, str, int, int]
"""A collective's group, name, group size, and how many of the same came before it."""


@dataclass(frozen=True)
class Summary:
    """One rank in figures."""

    path: str
    part: int
    """Which of the file's timelines it is."""
    source: str
    rank: int | None
    world_size: int | None
    origin_ns: int
    steps: int
    total_ns: int
    durations_ns: Ints
    """Of each step."""
    shares: dict[str, float]
    busy: list[float]
    """Of each device that did work."""
    devices: list[str]
    gpus: list[dict[str, Any]]
    versions: dict[str, Any]
    problems: dict[str, int]
    collectives: dict[Key, int] = field(default_factory=dict)
    """Device rows, in the order of ``start_ns`` and ``end_ns``."""
    start_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    end_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def step_s(self) -> float:
        return self.total_ns / self.steps / 1e9


def summarise(timeline: Timeline) -> Summary:
    """The figures of one timeline."""
    return summary_of(TimelineMetrics(timeline))


def summary_of(metrics: TimelineMetrics, part: int = 0) -> Summary:
    """The figures of one rank's metrics."""
    timeline, windows = metrics.timeline, metrics.windows
    keys = _keys(metrics)
    rows = np.fromiter(keys.values(), np.int64, len(keys))
    known = {device.id: device for device in timeline.devices}
    used = [device.device for device in metrics.activity.devices]
    return Summary(
        path=timeline.path,
        part=part,
        source=timeline.source,
        rank=timeline.rank,
        world_size=timeline.world_size,
        origin_ns=timeline.origin_ns,
        steps=len(windows),
        total_ns=windows.total_ns,
        durations_ns=windows.dur_ns,
        shares=metrics.shares,
        busy=[float(device.busy.within(windows.whole)[0] / windows.total_ns) for device in metrics.activity.devices],
        devices=[(known[number].name if number in known else "") or f"device {number}" for number in used],
        gpus=[
            {"name": device.name, "memory_bytes": device.memory_bytes}
            for device in timeline.devices
            if device.id in used
        ],
        versions={
            key: value
            for key in ("pytorch_version", "cuda_runtime_version", "cuda_driver_version", "hip_runtime_version")
            if isinstance(value := timeline.metadata.get(key), (str, int))
        },
        problems=dict(timeline.problems),
        collectives=keys,
        start_ns=timeline.device.start_ns[rows],
        end_ns=timeline.device.end_ns[rows],
    )


def _keys(metrics: TimelineMetrics) -> dict[Key, int]:
    """Device row of each collective by its key."""
    timeline = metrics.timeline
    table = timeline.device
    seen: dict[tuple[str, str, int], int] = {}
    result: dict[Key, int] = {}
    for row in metrics.collective_rows.tolist():
        known = int(table.collective[row])
        one = timeline.collectives[known] if known >= 0 else None
        name = timeline.names[table.name[row]]
        kind = (one.group, one.name or name, one.group_size or 0) if one is not None else ("", name, 0)
        seen[kind] = seen.get(kind, -1) + 1
        result[(*kind, seen[kind])] = row
    return result
