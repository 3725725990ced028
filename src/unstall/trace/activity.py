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
_STAGED = 0.9
"""Of a copy: a call that lasts so long into it had to bring the bytes along itself."""


@dataclass(frozen=True)
class ApiCalls:
    """The API calls of a timeline by what they do, one flag a host row."""

    api: Flags
    launch: Flags
    """Calls that submit kernels, CUDA graphs included."""
    sync: Flags
    """Calls that wait for a stream, an event or the device."""
    copy: Flags
    memory: Flags
    """Calls that allocate or free memory, many of which stop the device."""
    waited_copies: Ids
    """Device rows of copies whose call returned only when the copy was done: pageable memory, or no
    ``non_blocking=True``."""
    blocking: Flags
    """Calls in which the host waits for the device: synchronisation, and the calls of those copies."""


def calls(timeline: Timeline) -> ApiCalls:
    """What the API calls of a timeline do."""
    host = timeline.host
    api = (host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER)

    def named(pattern: re.Pattern[str]) -> Flags:
        return timeline.names_where(lambda name: bool(pattern.search(name)))[host.name] & api

    copy, sync = named(_COPY), named(_SYNC)
    waited_copies = _waited_copies(timeline, copy)
    blocking = sync.copy()
    blocking[timeline.launch[waited_copies]] = True
    return ApiCalls(api, named(_LAUNCH), sync, copy, named(_MEMORY) & ~named(_FREELY), waited_copies, blocking)


def _waited_copies(timeline: Timeline, copy: Flags) -> Ids:
    host, device = timeline.host, timeline.device
    rows = np.flatnonzero((device.kind == DeviceKind.MEMCPY) & (timeline.launch >= 0)).astype(np.int32)
    call = timeline.launch[rows]
    done = device.end_ns[rows] <= host.end_ns[call] + _END_SLACK_NS
    # Of pageable memory the call returns once all is staged, with the last of it still on its way.
    during = host.end_ns[call] - device.start_ns[rows]
    done |= during >= _STAGED * device.dur_ns[rows]
    waited = done & (host.dur_ns[call] >= BLOCKED_NS) & copy[call]
    # On the device alone: a host is never held up by a copy that is all the device's own.
    return rows[waited & (device.copy[rows] != CopyKind.D2D)]


@dataclass(frozen=True)
class DeviceActivity:
    """One device's time by what it does."""

    device: int
    rows: Ids
    """Rows in the device table."""
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

    @cached_property
    def calls(self) -> ApiCalls:
        return calls(self.timeline)

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
