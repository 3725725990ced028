"""The pattern of each part of a program: every top-level range, or the model's parts where no range was named.

A pipeline shows several patterns in different parts. The device's time is divided among the parts, so that they and
what belongs to none of them sum to it: what the device does is of the part that launched it. Time in which it is idle
is of the part that the main thread is in meanwhile, so a part that only prepares data shows up as well; where the
program named no ranges, it is of the part whose work ends it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unstall.records.trace import TraceRegion
from unstall.records.vocabulary import PatternName
from unstall.trace import intervals
from unstall.trace.activity import DeviceActivity
from unstall.trace.blame import tidy
from unstall.trace.intervals import Floats, Intervals
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.nesting import parents, pick
from unstall.trace.readers.names import host_kind
from unstall.trace.timeline import NONE, DeviceKind, HostKind, Ids, Ints, Timeline

_CLEAR = 0.4
"""A part whose largest use of time is less than this has no pattern of its own."""


def regions(metrics: TimelineMetrics, pattern_of: Mapping[str, PatternName] | None = None) -> list[TraceRegion]:
    """The parts by their time on the first device, the largest first; none when nothing is named in the trace.

    Args:
        metrics: of the trace.
        pattern_of: the pattern of a part, by its largest use of time: compute, communication, copies, loader, sync,
            submitting, cold, host.
    """
    if not metrics.activity.devices:
        return []
    device = metrics.activity.devices[0]
    start = metrics.timeline.device.start_ns
    rows = device.rows[start[device.rows] >= metrics.windows.start_ns[0]]
    program = _program(metrics.timeline)
    of_row = _names_of(metrics, rows, program)
    if not (of_row >= 0).any():
        return []
    names, group = np.unique(np.concatenate((of_row, metrics.timeline.host.name[program])), return_inverse=True)
    uses = {use: _sums(group[chosen], ns, len(names)) for use, chosen, ns in _work(metrics, device, rows)}
    for reason, gaps in metrics.idle_by_reason.items():
        if len(program):
            uses[reason] = _sums(group[len(rows) :], gaps.within(_spans(metrics.timeline, program)), len(names))
        else:
            following = np.searchsorted(start[rows], gaps.end)
            some = following < len(rows)
            uses[reason] = _sums(group[following[some]], (gaps.end - gaps.start)[some], len(names))
    return _named(metrics, names, uses, pattern_of or {})


def _program(timeline: Timeline) -> Ids:
    """Host rows of the outermost ranges of the main thread, which follow one another."""
    host = timeline.host
    rows = np.flatnonzero((host.kind == HostKind.ANNOTATION) & (host.thread == timeline.main_thread)).astype(np.int32)
    inside = parents(host.start_ns[rows], host.dur_ns[rows], np.zeros(len(rows), np.int32))
    return rows[inside == NONE]


def _meanwhile(timeline: Timeline, calls: Ids, program: Ids) -> Ids:
    """For each call the range that the main thread is in when it is made, as a host row, or -1."""
    when = pick(timeline.host.start_ns, calls)
    return pick(program, np.where(calls >= 0, _spans(timeline, program).index_at(when), NONE))


def _spans(timeline: Timeline, rows: Ids) -> Intervals:
    """From the start of each row to its end, or to the start of the next if that is sooner."""
    start, end = timeline.host.start_ns[rows], timeline.host.end_ns[rows]
    return Intervals(start, np.minimum(end, np.append(start[1:], end[-1:])))


def _names_of(metrics: TimelineMetrics, rows: Ids, program: Ids) -> Ids:
    """For each device row the name of the part that it is of, or -1.

    That is the outermost range around its launch; of a launch by another thread, such as autograd's, the range that
    the main thread is in meanwhile; else the range that the profiler shows around it on the device, which knows of
    work whose launch is not in the trace. In a trace without ranges it is the module.
    """
    t = metrics.timeline
    named = pick(t.host.name, metrics.blame.work.region[rows])
    named = np.where(named >= 0, named, pick(t.host.name, _meanwhile(t, t.launch[rows], program)))
    named = np.where(named >= 0, named, _range_on_device(t, rows))
    return named if (named >= 0).any() else pick(t.host.name, metrics.blame.work.module[rows])


def _range_on_device(timeline: Timeline, rows: Ids) -> Ids:
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
        on_stream = np.flatnonzero((table.device[rows] == device) & (table.stream[rows] == stream))
        spans = Intervals(ranges.start_ns[outermost], ranges.end_ns[outermost])
        result[on_stream] = pick(ranges.name[outermost], spans.index_at(table.start_ns[rows[on_stream]]))
    return result


def _work(metrics: TimelineMetrics, device: DeviceActivity, rows: Ids) -> list[tuple[str, Ints, Floats]]:
    """For each way to be busy, which of the rows it is, and the time of each: without what an earlier one covers, and
    without what the device computes meanwhile, as in the breakdown of the whole.
    """
    table = metrics.timeline.device
    kind = table.kind[rows]
    result = []
    for use, kinds, hidden in (
        ("compute", (DeviceKind.KERNEL,), intervals.EMPTY),
        ("communication", (DeviceKind.COLLECTIVE,), device.compute),
        ("copies", (DeviceKind.MEMCPY, DeviceKind.MEMSET), intervals.join(device.compute, device.communication)),
    ):
        chosen = np.flatnonzero(np.isin(kind, kinds))
        own = _uncovered(table.start_ns[rows[chosen]], table.end_ns[rows[chosen]])
        result.append((use, chosen, (own.end - own.start) - hidden.within(own)))
    return result


def _uncovered(start: Ints, end: Ints) -> Intervals:
    """What each interval covers and none before it does; one an interval, some of them empty. Starts ascend."""
    reach = np.maximum.accumulate(end)
    begin = np.maximum(start, np.concatenate((start[:1], reach[:-1])))
    return Intervals(begin, np.maximum(end, begin))


def _sums(group: Ints, ns: Ints | Floats, groups: int) -> Floats:
    return np.asarray(np.bincount(group, weights=ns, minlength=groups), np.float64)


def _named(
    metrics: TimelineMetrics, names: Ids, uses: dict[str, Floats], pattern_of: Mapping[str, PatternName]
) -> list[TraceRegion]:
    total = np.sum(list(uses.values()), axis=0)
    result = []
    for index in np.argsort(-total).tolist():
        if names[index] < 0 or not total[index]:
            continue
        parts = {use: float(ns[index] / total[index]) for use, ns in uses.items() if ns[index]}
        largest = max(parts, key=lambda use: parts[use])
        share = float(total[index] / metrics.windows.total_ns)
        exposed = parts.get("communication", 0.0) + parts.get("copies", 0.0)
        result.append(
            TraceRegion(
                name=tidy(metrics.timeline.names[names[index]]),
                share=share,
                mean_s=share * metrics.windows.step_s,
                busy=parts.get("compute", 0.0) + exposed,
                exposed=exposed,
                pattern=pattern_of.get(largest) if parts[largest] >= _CLEAR else None,
                parts=parts,
            )
        )
    return result
