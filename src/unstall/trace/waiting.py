"""Where the host waits for the device, and what it copies: who asked, how often, how long, how much of it in vain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unstall.trace import intervals
from unstall.trace.activity import Activity
from unstall.trace.blame import TraceBlame
from unstall.trace.intervals import Intervals
from unstall.trace.nesting import pick
from unstall.trace.steps import StepWindows
from unstall.trace.thresholds import TINY_COPY_BYTES
from unstall.trace.timeline import CopyKind, DeviceKind, HostMemory


@dataclass(frozen=True)
class WaitSite:
    """One place in the program that makes the host wait."""

    row: int
    """Row of the longest call."""
    call: str
    operator: str
    count: int
    blocked_ns: float
    idle_ns: float
    """Nanoseconds of it with the device idle: the rest is only waiting for work that has to be done anyway."""


def wait_sites(activity: Activity, blame: TraceBlame, windows: StepWindows) -> list[WaitSite]:
    """Places where the host waits for the device, those with the most idle time first."""
    t = activity.timeline
    rows = np.flatnonzero(activity.calls.blocking & (t.host.start_ns >= windows.start_ns[0])).astype(np.int32)
    if not len(rows):
        return []
    busy = intervals.join(*(device.busy for device in activity.devices)) if activity.devices else intervals.EMPTY
    spans = Intervals(t.host.start_ns[rows], t.host.end_ns[rows])
    blocked = (spans.end - spans.start).astype(np.float64)
    idle = blocked - busy.within(spans)
    origin = blame.origin(rows)
    keys = np.stack([pick(t.host.name, part) for part in (origin.function, origin.operator, rows)])
    _, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.reshape(-1)
    sites = []
    for number in range(int(group.max()) + 1):
        mine = np.flatnonzero(group == number)
        longest = mine[np.argmax(blocked[mine])]
        sites.append(
            WaitSite(
                int(rows[longest]),
                t.names[t.host.name[rows[longest]]],
                blame.name(int(origin.operator[longest])),
                len(mine),
                float(blocked[mine].sum()),
                float(idle[mine].sum()),
            )
        )
    return sorted(sites, key=lambda site: (-site.idle_ns, -site.blocked_ns))


@dataclass(frozen=True)
class CopyGroup:
    """Copies of one direction and kind of host memory."""

    direction: CopyKind
    memory: HostMemory
    count: int
    tiny: int
    """Copies so small that the wait costs more than the copy."""
    bytes: int
    device_ns: float
    blocking: int
    """Copies that the host waited for."""
    longest: int
    """Device row of the one that took the device longest."""


def copy_groups(activity: Activity, windows: StepWindows) -> list[CopyGroup]:
    """The copies between host and device, the most device time first."""
    table = activity.timeline.device
    rows = np.flatnonzero((table.kind == DeviceKind.MEMCPY) & (table.start_ns >= windows.start_ns[0]))
    waited = np.zeros(len(table), bool)
    waited[activity.calls.waited_copies] = True
    groups = []
    for direction in (CopyKind.H2D, CopyKind.D2H):
        for memory in HostMemory:
            mine = rows[(table.copy[rows] == direction) & (table.memory[rows] == memory)]
            if not len(mine):
                continue
            size = table.bytes[mine]
            groups.append(
                CopyGroup(
                    direction,
                    memory,
                    len(mine),
                    int(((size >= 0) & (size <= TINY_COPY_BYTES)).sum()),
                    int(size[size > 0].sum()),
                    float(table.dur_ns[mine].sum()),
                    int(waited[mine].sum()),
                    int(mine[np.argmax(table.dur_ns[mine])]),
                )
            )
    return sorted(groups, key=lambda group: -group.device_ns)
