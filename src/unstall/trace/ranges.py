"""The ranges that a profiler shows on the device: Kineto's copies of the program's own, one a stream that works for it.

They are no work: what is inside them is in the device table, and counting both would count twice.
"""

from __future__ import annotations

import numpy as np

from unstall.trace.nesting import parents
from unstall.trace.readers.names import host_kind
from unstall.trace.timeline import NONE, HostKind, Ids, Timeline


def around(timeline: Timeline, rows: Ids) -> Ids:
    """For each device row the name of the outermost range around it on its stream, as an index, or -1."""
    result = np.full(len(rows), NONE, np.int32)
    ranges, table = timeline.ranges, timeline.device
    if not len(ranges):
        return result
    named = timeline.names_where(lambda name: host_kind(name, HostKind.ANNOTATION) == HostKind.ANNOTATION)[ranges.name]
    for device, stream in sorted(set(zip(ranges.device[named].tolist(), ranges.stream[named].tolist()))):
        mine = np.flatnonzero(named & (ranges.device == device) & (ranges.stream == stream))
        same = np.zeros(len(mine), np.int32)
        outermost = mine[parents(ranges.start_ns[mine], ranges.dur_ns[mine], same) == NONE]
        here = np.flatnonzero((table.device[rows] == device) & (table.stream[rows] == stream))
        start = table.start_ns[rows[here]]
        at = np.searchsorted(ranges.start_ns[outermost], start, side="right") - 1
        last = outermost[np.maximum(at, 0)]
        inside = (at >= 0) & (start < ranges.end_ns[last])
        result[here[inside]] = ranges.name[last[inside]]
    return result
