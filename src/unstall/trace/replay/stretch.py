"""What is replayed: a stretch of each rank's timeline, and the calls and device work in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unstall.trace.activity import Activity
from unstall.trace.queue import Queue
from unstall.trace.replay.graph import EdgeKind, Items
from unstall.trace.timeline import NONE, HostKind, Ids, Ints, Timeline

_DEVICE_KIND = np.array([EdgeKind.COMPUTE, EdgeKind.COPY, EdgeKind.COMPUTE, EdgeKind.COMMUNICATION])
"""The kind of edge by DeviceKind. A memset is as much the device's own work as a kernel."""
_LANES = 1_000_000
"""Numbers for the threads and streams of one rank."""


@dataclass(frozen=True)
class Stretch:
    """A part of one rank's timeline."""

    activity: Activity
    queue: Queue
    begin_ns: int
    end_ns: int
    """End of the host's part; what it submits may run on for longer."""
    offset_ns: int = 0
    """Added to its times: clocks of ranks differ."""
    behind: bool = False
    """Whether the device is more than a step behind its host: it does the work of earlier steps at first."""

    @property
    def timeline(self) -> Timeline:
        return self.activity.timeline

    @cached_property
    def device_rows(self) -> Ids:
        """Device work that was launched in the stretch, or that starts in it and was launched before the trace."""
        t = self.timeline
        launched = t.device.start_ns.copy()
        known = t.launch >= 0
        launched[known] = t.host.start_ns[t.launch[known]]
        return np.flatnonzero((launched >= self.begin_ns) & (launched < self.end_ns)).astype(np.int32)

    @cached_property
    def call_rows(self) -> Ids:
        """Calls that submit device work or may wait for it, and waits for a batch; only the outermost."""
        t = self.timeline
        wanted = self.activity.calls.blocking | (t.host.kind == HostKind.LOADER)
        wanted &= (t.host.start_ns >= self.begin_ns) & (t.host.start_ns < self.end_ns)
        launch = t.launch[self.device_rows]
        wanted[launch[launch >= 0]] = True
        rows = np.flatnonzero(wanted).astype(np.int32)
        return rows[_outermost(t.host.thread[rows], t.host.start_ns[rows], self.call_end(rows))]

    def call_end(self, rows: Ids) -> Ints:
        """Ends of calls. An operator that stands for an unknown launch call has no length of its own."""
        host = self.timeline.host
        timed = self.activity.calls.api[rows] | (host.kind[rows] == HostKind.LOADER)
        return np.where(timed, host.end_ns[rows], host.start_ns[rows])

    @cached_property
    def launcher(self) -> Ints:
        """For each of the device rows, the index in ``call_rows`` of the call that launched it, or -1."""
        host = self.timeline.host
        launch = self.timeline.launch[self.device_rows]
        if not len(self.call_rows):
            return np.full(len(launch), NONE)
        order = np.lexsort((self.call_rows, host.thread[self.call_rows]))
        rows = self.call_rows[order]
        key = host.thread[rows].astype(np.int64) * len(host) + rows
        wanted = host.thread[launch].astype(np.int64) * len(host) + launch
        at = np.maximum(np.searchsorted(key, wanted, side="right") - 1, 0)
        return np.where(launch >= 0, order[at], NONE)


def items_of(stretches: list[Stretch]) -> Items:
    """The items of all stretches: calls rank by rank, then device work rank by rank."""
    parts = [_calls(number, stretch) for number, stretch in enumerate(stretches)]
    calls = sum(len(part[0]) for part in parts)
    parts += [_work(number, stretch) for number, stretch in enumerate(stretches)]
    start, end, row, rank, lane, kind = (np.concatenate(column) for column in zip(*parts))
    return Items(start, end, calls, row.astype(np.int32), rank.astype(np.int32), lane, kind.astype(np.uint8))


def launchers(stretches: list[Stretch], items: Items) -> Ints:
    """For each item of device work the item of its launch call, or -1; for calls -1."""
    result = np.full(len(items), NONE, np.int64)
    calls = np.concatenate(([0], np.cumsum([len(stretch.call_rows) for stretch in stretches])))
    at = items.calls
    for first, stretch in zip(calls, stretches):
        within = stretch.launcher
        result[at : at + len(within)] = np.where(within >= 0, within + first, NONE)
        at += len(within)
    return result


def _calls(number: int, stretch: Stretch) -> tuple[NDArray[Any], ...]:
    host, rows = stretch.timeline.host, stretch.call_rows
    kind = np.where(stretch.activity.calls.launch[rows], EdgeKind.LAUNCH_CALL, EdgeKind.OTHER_CALL)
    kind = np.where(host.kind[rows] == HostKind.LOADER, EdgeKind.LOADER, kind)
    lane = number * _LANES + host.thread[rows].astype(np.int64)
    start, end = host.start_ns[rows] + stretch.offset_ns, stretch.call_end(rows) + stretch.offset_ns
    return start, end, rows, np.full(len(rows), number), lane, kind


def _work(number: int, stretch: Stretch) -> tuple[NDArray[Any], ...]:
    work, rows = stretch.timeline.device, stretch.device_rows
    stream_key = work.device[rows].astype(np.int64) << 40 | work.stream[rows] & (1 << 40) - 1
    stream = np.unique(stream_key, return_inverse=True)[1].reshape(-1)
    lane = number * _LANES + _LANES // 2 + stream
    start, end = work.start_ns[rows] + stretch.offset_ns, work.end_ns[rows] + stretch.offset_ns
    return start, end, rows, np.full(len(rows), number), lane, _DEVICE_KIND[work.kind[rows]]


def _outermost(lane: Ids, start: Ints, end: Ints) -> Ints:
    """Indices of intervals that begin inside no earlier one of their lane."""
    outermost: list[int] = []
    reach: dict[int, int] = {}
    for index, (where, begin, until) in enumerate(zip(lane.tolist(), start.tolist(), end.tolist())):
        if begin >= reach.get(where, begin):
            outermost.append(index)
            reach[where] = max(until, begin)
    return np.array(outermost, np.int64)
