"""Everything that the patterns look at, of one rank; each part is worked out once, when it is asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from unstall.trace.activity import Activity
from unstall.trace.blame import TraceBlame
from unstall.trace.breakdown import Breakdown, breakdown, idle_reasons
from unstall.trace.flops import Flops, count
from unstall.trace.intervals import Intervals
from unstall.trace.kernels import Kernels
from unstall.trace.queue import Queue
from unstall.trace.replay.replay import Replay, representative, stretch_of
from unstall.trace.steps import StepWindows, windows
from unstall.trace.timeline import DeviceKind, HostKind, Ids, Ints, Timeline
from unstall.trace.waiting import CopyGroup, WaitSite, copy_groups, wait_sites

_MOST_GAPS = 1000


class TimelineMetrics:
    """One timeline, measured."""

    def __init__(self, timeline: Timeline):
        self.timeline = timeline
        self.activity = Activity(timeline)
        self.queue = Queue(self.activity)
        self.blame = TraceBlame(timeline)

    @cached_property
    def windows(self) -> StepWindows:
        return windows(self.timeline)

    @cached_property
    def breakdown(self) -> Breakdown:
        return breakdown(self.activity, self.queue, self.windows)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The breakdown over all steps, by the names of its fields."""
        return self.breakdown.mean(self.windows)

    @cached_property
    def kernels(self) -> Kernels:
        return Kernels(self.timeline, self.blame, self.windows)

    @cached_property
    def waits(self) -> list[WaitSite]:
        return wait_sites(self.activity, self.blame, self.windows)

    @cached_property
    def copies(self) -> list[CopyGroup]:
        return copy_groups(self.activity, self.windows)

    @cached_property
    def flops(self) -> Flops | None:
        return count(self.timeline, self.windows)

    @cached_property
    def replay(self) -> Replay:
        steps = representative(self.activity, self.windows)
        stretch = stretch_of(self.activity, self.queue, self.windows, steps)
        return Replay([stretch], steps[1] - steps[0], len(self.windows))

    @cached_property
    def graph_share(self) -> float:
        """Share of kernels that a CUDA graph launched."""
        graph = self.timeline.device.graph[self.kernels.rows]
        return float(graph.mean()) if len(graph) else 0.0

    @property
    def kernels_per_step(self) -> float:
        return len(self.kernels.rows) / len(self.windows)

    @cached_property
    def step_variation(self) -> float:
        """Standard deviation over mean of the steps; the last, which waits for the device's queue, is left out."""
        steps = self.windows.dur_ns[:-1] if len(self.windows) > 3 else self.windows.dur_ns
        return float(steps.std() / steps.mean()) if len(steps) > 1 else 0.0

    def per_step(self, share: float) -> float:
        """Seconds a step of a share of all time."""
        return share * self.windows.step_s

    def idle(self, reason: str) -> Intervals:
        """When the first device is idle for a reason."""
        return self.idle_by_reason[reason]

    @cached_property
    def idle_by_reason(self) -> dict[str, Intervals]:
        """The idle time of the first device, see ``breakdown.idle_reasons``."""
        return idle_reasons(self.activity, self.queue, self.activity.devices[0], self.windows)

    @cached_property
    def collective_rows(self) -> Ids:
        return np.flatnonzero(self.timeline.device.kind == DeviceKind.COLLECTIVE).astype(np.int32)

    @cached_property
    def loader_row(self) -> int:
        """The longest wait for a batch, -1 if the trace has none."""
        rows = np.flatnonzero(self.timeline.host.kind == HostKind.LOADER)
        return int(rows[np.argmax(self.timeline.host.dur_ns[rows])]) if len(rows) else -1

    def after_gaps(self, reason: str) -> tuple[Ids, Ints]:
        """Device rows that the longest idle times for a reason ended with, and their lengths, the longest first."""
        gaps = self.idle(reason)
        order = np.argsort(gaps.start - gaps.end, kind="stable")[:_MOST_GAPS]
        start = self.timeline.device.start_ns
        rows = np.minimum(np.searchsorted(start, gaps.end[order]), len(start) - 1).astype(np.int32)
        return rows, (gaps.end - gaps.start)[order]
