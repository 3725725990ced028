"""The launch queue: how long work waits between its launch and its start, and who waits for whom because of it.

An empty queue means the host is late, a deep one that the device is. The share of time inside launch calls tells
neither: it is 15 % at batch 4 and at batch 128 of the same model alike.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from unstall.trace import intervals
from unstall.trace.activity import Activity, DeviceActivity
from unstall.trace.intervals import Floats, Intervals
from unstall.trace.steps import device_steps
from unstall.trace.thresholds import COLD_LAUNCH_NS, DEEP_QUEUE, PROMPT_START_NS
from unstall.trace.timeline import DeviceKind, Ids, Ints

_BASE_PERCENTILE = 5
_LONG_CALL = 10  # times the median launch call


class Queue:
    """Launches and starts of the kernels of a timeline; graph nodes wait for their graph's launch."""

    def __init__(self, activity: Activity):
        self._activity = activity
        self._timeline = activity.timeline

    @cached_property
    def rows(self) -> Ids:
        """Device rows of kernels whose launch call is known."""
        t = self._timeline
        kernels = (t.device.kind == DeviceKind.KERNEL) | (t.device.kind == DeviceKind.COLLECTIVE)
        return np.flatnonzero(kernels & (t.launch >= 0)).astype(np.int32)

    @cached_property
    def delay_ns(self) -> Ints:
        """From the return of the launch call to the kernel's start; under zero when it starts before the return."""
        t = self._timeline
        return t.device.start_ns[self.rows] - t.host.end_ns[t.launch[self.rows]]

    @cached_property
    def base_ns(self) -> float:
        """The delay of a launch into an empty queue: some 2 µs on NVIDIA's, 16 µs on AMD's devices."""
        return max(float(np.percentile(self.delay_ns, _BASE_PERCENTILE)), 0.0) if len(self.rows) else 0.0

    @cached_property
    def prompt_ns(self) -> float:
        """Delay up to which a kernel counts as started at once: a deep queue's own least delay is no measure."""
        return PROMPT_START_NS + min(self.base_ns, 3 * PROMPT_START_NS)

    @cached_property
    def prompt_share(self) -> float | None:
        """Share of kernels that start at once: near one the host is late, near zero the device is."""
        if not len(self.rows):
            return None
        return float((self.delay_ns <= self.prompt_ns).mean())

    @cached_property
    def depth(self) -> tuple[Ints, Ints]:
        """Times, and how many kernels are submitted and not started from each of them on."""
        t = self._timeline
        launched, started = t.host.start_ns[t.launch[self.rows]], t.device.start_ns[self.rows]
        times = np.concatenate((launched, started))
        change = np.repeat([1, -1], len(self.rows))
        order = np.argsort(times, kind="stable")
        return times[order], np.cumsum(change[order])

    def depth_at(self, times: Ints) -> Ints:
        """Queue depth at each time."""
        when, depth = self.depth
        if not len(when):
            return np.zeros(len(times), np.int64)
        at = np.searchsorted(when, times, side="right") - 1
        return np.where(at >= 0, depth[np.maximum(at, 0)], 0)

    def depth_over(self, windows: Intervals, points: int = 20) -> list[Floats]:
        """Mean depth in each of ``points`` equal parts of each window, for a plot."""
        when, depth = self.depth
        if not len(when):
            return [np.zeros(points) for _ in windows.start]
        area = np.concatenate(([0.0], np.cumsum(depth[:-1] * np.diff(when))))
        edges = np.linspace(windows.start, windows.end, points + 1).T
        until = np.interp(edges, when, area)
        return list(np.diff(until, axis=1) / np.maximum(np.diff(edges, axis=1), 1))

    @cached_property
    def held_up_rows(self) -> Ids:
        """Calls that submit work and last long because the queue is full: the device is late, not the host."""
        rows, host = self._long_calls(_LONG_CALL), self._timeline.host
        is_deep = self.depth_at(host.start_ns[rows]) >= DEEP_QUEUE
        begun = device_steps(self._timeline)
        if begun is not None:  # until then it is full of what was submitted before the trace
            is_deep |= host.start_ns[rows] < begun[0]
        return rows[is_deep]

    @cached_property
    def back_pressure(self) -> Intervals:
        """When such a call is held up."""
        rows, host = self.held_up_rows, self._timeline.host
        return intervals.union(host.start_ns[rows], host.end_ns[rows])

    @cached_property
    def cold_rows(self) -> Ids:
        """Launch calls that load their kernel's code: the first of that kernel, long, with nothing queued before it."""
        t = self._timeline
        _, first = np.unique(t.device.name[self.rows], return_index=True)
        calls = np.unique(t.launch[self.rows[first]])
        calls = calls[(t.host.dur_ns[calls] >= COLD_LAUNCH_NS) & self._activity.calls.launch[calls]]
        return calls[self.depth_at(t.host.start_ns[calls] - 1) <= 1].astype(np.int32)

    @cached_property
    def cold(self) -> Intervals:
        host = self._timeline.host
        return intervals.union(host.start_ns[self.cold_rows], host.end_ns[self.cold_rows])

    def delayed(self, device: DeviceActivity) -> Intervals:
        """Work is in the device's queue for longer than a launch takes to arrive, and has not started."""
        t = self._timeline
        mine = self.rows[t.device.device[self.rows] == device.device]
        ready = t.host.end_ns[t.launch[mine]] + int(self.prompt_ns)
        return intervals.union(ready, t.device.start_ns[mine])

    def _long_calls(self, times: float) -> Ids:
        """Of those that submit work and wait for none: this many times as long as launches usually are."""
        t, calls = self._timeline, self._activity.calls
        if not calls.launch.any():
            return np.zeros(0, np.int32)
        usual = float(np.median(t.host.dur_ns[calls.launch]))
        submits = calls.launch.copy()
        submits[t.launch[t.launch >= 0]] = True
        submits &= calls.api & ~calls.blocking
        return np.flatnonzero(submits & (t.host.dur_ns > times * usual)).astype(np.int32)
