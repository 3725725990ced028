"""Who was active when: API calls by what they do, and the sets of time that every breakdown is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unstall.trace import intervals
from unstall.trace.intervals import Intervals
from unstall.trace.timeline import CopyKind, DeviceKind, Flags, HostKind, Ids, Timeline

_LAUNCH = re.compile(r"Launch(?!Host)")
_SYNC = re.compile(r"Synchronize")
_COPY = re.compile(r"[Mm]emcpy")
_MEMORY = re.compile(r"(Malloc|MemAlloc|Free|HostAlloc|HostRegister|MemCreate|MemMap)")
_FREELY = re.compile(r"Async")
"""cudaMallocAsync and cudaFreeAsync take from a pool in stream order: they wait for nothing."""

BLOCKED_NS = 20_000
"""A call that ends with its copy and lasted this long waited for it; a call that only submits lasts some µs."""
_END_SLACK_NS = 5_000
"""Clocks of host and device agree to some microseconds."""


@dataclass(frozen=True)
class Calls:
    """The API calls of a timeline by what they do, one flag a host row."""

    timeline: Timeline

    @cached_property
    def api(self) -> Flags:
        kind = self.timeline.host.kind
        return (kind == HostKind.RUNTIME) | (kind == HostKind.DRIVER)

    @cached_property
    def launch(self) -> Flags:
        """Calls that submit kernels, CUDA graphs included."""
        return self._named(_LAUNCH)

    @cached_property
    def sync(self) -> Flags:
        """Calls that wait for a stream, an event or the device."""
        return self._named(_SYNC)

    @cached_property
    def copy(self) -> Flags:
        return self._named(_COPY)

    @cached_property
    def memory(self) -> Flags:
        """Calls that allocate or free memory, many of which stop the device."""
        found = self.timeline.names_where(lambda name: bool(_MEMORY.search(name) and not _FREELY.search(name)))
        return found[self.timeline.host.name] & self.api

    @cached_property
    def blocking_copy(self) -> Flags:
        """Copies whose call returned only when the copy was done: pageable memory, or no ``non_blocking=True``."""
        return self._flags(self.timeline.launch[self.waited_copies])

    @cached_property
    def waited_copies(self) -> Ids:
        """Device rows of those copies."""
        t = self.timeline
        rows = np.flatnonzero((t.device.kind == DeviceKind.MEMCPY) & (t.launch >= 0)).astype(np.int32)
        call = t.launch[rows]
        done = t.device.end_ns[rows] <= t.host.end_ns[call] + _END_SLACK_NS
        waited = done & (t.host.dur_ns[call] >= BLOCKED_NS) & self.copy[call]
        # On the device alone: a host is never held up by a copy that is all the device's own.
        return rows[waited & (t.device.copy[rows] != CopyKind.D2D)]

    @cached_property
    def blocking(self) -> Flags:
        """Calls in which the host waits for the device."""
        return self.sync | self.blocking_copy

    def _named(self, pattern: re.Pattern[str]) -> Flags:
        return self.timeline.names_where(lambda name: bool(pattern.search(name)))[self.timeline.host.name] & self.api

    def _flags(self, rows: Ids) -> Flags:
        result = np.zeros(len(self.timeline.host), bool)
        result[rows] = True
        return result


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
