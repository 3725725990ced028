"""The ranks of one run: figures of each, collectives matched, clocks aligned, and who keeps whom waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from unstall.trace.intervals import Floats
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.replay.replay import Replay, representative, stretch_of
from unstall.trace.timeline import Collective, Ints, Timeline

Key = tuple[str, str, int, int]
"""A collective's group, name, group size, and how many of the same came before it."""


@dataclass(frozen=True)
class Summary:
    """One rank in figures."""

    path: str
    part: int
    """The number of the file's timeline."""
    source: str
    rank: int | None
    world_size: int | None
    origin_ns: int
    steps: int
    total_ns: int
    durations_ns: Ints
    """Nanoseconds of each step."""
    shares: dict[str, float]
    busy: list[float]
    """Share of the time that each device did work."""
    devices: list[str]
    gpus: list[dict[str, Any]]
    versions: dict[str, Any]
    problems: dict[str, int]
    collectives: dict[Key, int] = field(default_factory=dict)
    """Device rows, in the order of ``start_ns`` and ``end_ns``."""
    start_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    end_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    metrics: TimelineMetrics | None = None
    """All that can be measured, of a rank whose timeline is kept in memory."""

    @property
    def step_s(self) -> float:
        return self.total_ns / self.steps / 1e9


def summary_of(metrics: TimelineMetrics, part: int = 0) -> Summary:
    """The figures of one rank, which is this one of its file's timelines."""
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
    repeats: dict[tuple[str, str, int], int] = {}
    result: dict[Key, int] = {}
    for row in metrics.collective_rows.tolist():
        index = int(table.collective[row])
        collective = timeline.collectives[index] if index >= 0 else Collective()
        name = timeline.names[table.name[row]]
        kind = (collective.group, collective.name or name, collective.group_size or 0)
        repeats[kind] = repeats.get(kind, -1) + 1
        result[(*kind, repeats[kind])] = row
    return result


@dataclass(frozen=True)
class Matched:
    """Collectives that all ranks took part in."""

    rows: Ints
    """Device rows, one row a collective, one column a rank."""
    start_ns: Ints
    """Starts on the first rank's clock, the same shape."""
    end_ns: Ints
    offset_ns: Ints
    """Added to each rank's times."""

    @property
    def late_ns(self) -> Ints:
        """How much later than the first rank each one came."""
        return self.start_ns - self.start_ns.min(axis=1, keepdims=True)

    @property
    def wait_ns(self) -> Ints:
        """How long each rank waited for the last one."""
        return self.start_ns.max(axis=1, keepdims=True) - self.start_ns


class Ranks:
    """The ranks of a run, in their order.

    Args:
        summaries: of every rank.
        load: reads a rank again whose summary has no metrics; its timeline is kept from then on.
    """

    def __init__(self, summaries: Sequence[Summary], load: Callable[[Summary], Timeline] | None = None):
        self.summaries = sorted(summaries, key=lambda summary: -1 if summary.rank is None else summary.rank)
        self._load = load
        self._loaded: dict[int, TimelineMetrics] = {}

    @classmethod
    def of(cls, timelines: Sequence[Timeline]) -> Ranks:
        """Of timelines in memory."""
        every = [TimelineMetrics(timeline) for timeline in timelines]
        return cls([replace(summary_of(metrics), metrics=metrics) for metrics in every])

    def __len__(self) -> int:
        return len(self.summaries)

    def metrics(self, index: int) -> TimelineMetrics:
        """All metrics of a rank, read again if it is not in memory."""
        summary = self.summaries[index]
        if summary.metrics is not None:
            return summary.metrics
        if index not in self._loaded:
            assert self._load is not None
            self._loaded[index] = TimelineMetrics(self._load(summary))
        return self._loaded[index]

    def name(self, index: int) -> int:
        """The rank's own number."""
        rank = self.summaries[index].rank
        return index if rank is None else rank

    def with_device(self) -> Ranks:
        """Those that did work on a device."""
        return Ranks([summary for summary in self.summaries if summary.devices], self._load)

    @cached_property
    def matched(self) -> Matched | None:
        """None when the ranks have no collectives in common."""
        if len(self) < 2:
            return None
        keys = [summary.collectives for summary in self.summaries]
        common = [key for key in keys[0] if all(key in other for other in keys[1:])]
        if not common:
            return None
        rows = np.array([[row_of[key] for row_of in keys] for key in common], np.int64)
        order = [{key: index for index, key in enumerate(row_of)} for row_of in keys]
        at = np.array([[index_of[key] for index_of in order] for key in common], np.int64)
        start = np.stack([summary.start_ns[at[:, i]] for i, summary in enumerate(self.summaries)], axis=1)
        end = np.stack([summary.end_ns[at[:, i]] for i, summary in enumerate(self.summaries)], axis=1)
        # Ranks leave a collective together, whatever their clocks say.
        offset = np.median(end[:, :1] - end, axis=0).astype(np.int64)
        return Matched(rows, start + offset, end + offset, offset)

    @cached_property
    def pace_setter(self) -> int:
        """The rank that waits least for the others: what it does sets the pace of all."""
        return 0 if self.matched is None else int(self.matched.wait_ns.sum(axis=0).argmin())

    @cached_property
    def replay(self) -> Replay | None:
        """All ranks replayed together; None where they are not all in memory, or their collectives do not match."""
        metrics = [summary.metrics for summary in self.summaries if summary.metrics is not None]
        if self.matched is None or len(metrics) < len(self):
            return None
        steps = [representative(rank.activity, rank.windows) for rank in metrics]
        if any(step != steps[0] for step in steps):
            return None
        stretches = [
            stretch_of(rank.activity, rank.queue, rank.windows, steps[0], int(offset))
            for rank, offset in zip(metrics, self.matched.offset_ns)
        ]
        first, last = steps[0]
        return Replay(stretches, last - first, len(metrics[0].windows), self.matched.rows)

    @property
    def step_s(self) -> float:
        """The mean step, mean over ranks."""
        return float(np.mean([summary.step_s for summary in self.summaries]))

    @cached_property
    def shares(self) -> dict[str, float]:
        """The breakdown, mean over ranks."""
        names = self.summaries[0].shares
        return {name: float(np.mean([summary.shares[name] for summary in self.summaries])) for name in names}

    @cached_property
    def late_share(self) -> Floats | None:
        """For each rank, the share of the step that the others waited for it at collectives."""
        if self.matched is None:
            return None
        late_ns = self.matched.late_ns
        order = np.sort(late_ns, axis=1)
        behind = order[:, -1] - order[:, -2]  # what the others would gain if it had come with the next to last
        total = np.bincount(late_ns.argmax(axis=1), weights=behind, minlength=len(self)).astype(np.float64)
        return np.asarray(total / np.mean([summary.total_ns for summary in self.summaries]))

    @cached_property
    def wait_share(self) -> float:
        """Share of the mean rank's time in which it waits at collectives for others."""
        if self.matched is None:
            return 0.0
        return float(self.matched.wait_ns.sum() / sum(summary.total_ns for summary in self.summaries))
