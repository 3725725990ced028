"""Who was active when: the sets of time that every breakdown is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unstall.trace import intervals
from unstall.trace.calls import Calls
from unstall.trace.intervals import Intervals
from unstall.trace.timeline import DeviceKind, Flags, HostKind, Ids, Timeline


@dataclass(frozen=True)
class DeviceActivity:
    """One device's time by what it does."""

    device: int
    rows: Ids
    """Its rows in the device table."""
    compute: Intervals
    communication: Intervals
    copies: Intervals
    """Copies and memsets."""

    @cached_property
    def busy(self) -> Intervals:
        return intervals.join(self.compute, self.communication, self.copies)

    @cached_property
    def exposed_communication(self) -> Intervals:
        """Collectives while nothing is computed."""
        return intervals.without(self.communication, intervals.join(self.compute, self.copies))

    @cached_property
    def exposed_copies(self) -> Intervals:
        """Copies while nothing is computed or communicated."""
        return intervals.without(self.copies, intervals.join(self.compute, self.communication))


class Activity:
    """Device and host time of a timeline as sets, each made once when it is asked for."""

    def __init__(self, timeline: Timeline):
        self.timeline = timeline
        self.calls = Calls(timeline)

    @cached_property
    def devices(self) -> list[DeviceActivity]:
        """The devices that did any work, ascending."""
        return [self._device(number) for number in np.unique(self.timeline.device.device).tolist()]

    @cached_property
    def operators(self) -> Intervals:
        return self._host(self.timeline.host.kind == HostKind.OPERATOR)

    @cached_property
    def loader(self) -> Intervals:
        return self._host(self.timeline.host.kind == HostKind.LOADER)

    @cached_property
    def launches(self) -> Intervals:
        return self._host(self.calls.launch)

    @cached_property
    def syncs(self) -> Intervals:
        """Explicit synchronisation calls."""
        return self._host(self.calls.sync)

    @cached_property
    def blocked(self) -> Intervals:
        """Some host thread waits for the device, in a synchronisation or in a copy that blocks."""
        return self._host(self.calls.blocking)

    @cached_property
    def api(self) -> Intervals:
        return self._host(self.calls.api)

    @cached_property
    def in_flight(self) -> Intervals:
        """Some work is submitted and has not started."""
        t = self.timeline
        rows = np.flatnonzero(t.launch >= 0)
        return intervals.union(t.host.end_ns[t.launch[rows]], t.device.start_ns[rows])

    def _host(self, rows: Flags) -> Intervals:
        host = self.timeline.host
        return intervals.union(host.start_ns[rows], host.end_ns[rows])

    def _device(self, number: int) -> DeviceActivity:
        table = self.timeline.device
        mine = table.device == number

        def of(*kinds: DeviceKind) -> Intervals:
            rows = mine & np.isin(table.kind, kinds)
            return intervals.union(table.start_ns[rows], table.end_ns[rows])

        return DeviceActivity(
            number,
            np.flatnonzero(mine).astype(np.int32),
            of(DeviceKind.KERNEL),
            of(DeviceKind.COLLECTIVE),
            of(DeviceKind.MEMCPY, DeviceKind.MEMSET),
        )
