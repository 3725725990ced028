"""Edges of the devices: a kernel comes after its launch, after the one before it on its stream, and after waits."""

from __future__ import annotations

import numpy as np

from unstall.trace.replay.graph import EdgeKind, Edges, Floats, Items, in_lane_order, latest_end_before
from unstall.trace.replay.program import BEGIN
from unstall.trace.replay.stretch import Stretch
from unstall.trace.timeline import NONE, Ints, WaitKind

_USUAL = 25
"""Percentile that stands for the usual latency: delays have a long tail and no negative one."""
_MOST_LATENCY_NS = 30_000.0
"""A launch into an empty queue arrives in 2 µs to 25 µs; where no queue is ever empty, latencies show none of it."""
_USUAL_GAP_NS = 2_000.0
"""Between two kernels of a stream, if the trace has no two that follow each other at once."""
_LONG_GAP_NS = 20_000
"""A stream that is idle for longer, with work submitted, waits for something else."""
_MOST_OVERLAP = 0.5
"""Share of a kernel: one that starts before so much of the one before it is done is not in order with it."""
_ROUNDING_NS = 2_000
"""Old traces are in whole microseconds, so kernels in order may seem to overlap."""
_WAIT_LATENCY_NS = 30_000
"""Work that waited for another stream starts this soon after it."""
_EVENT_LATENCY_NS = 2_000
"""Nanoseconds from an event to what waited for it, where nothing else held that up."""


def device_order(items: Items, launcher: Ints, own_ns: Floats, edges: Edges, begin_ns: int, *, behind: bool) -> None:
    """For each item of device work: when it may start. ``behind``: the device is a step or more behind its host."""
    work = np.arange(items.calls, len(items))
    if not len(work):
        return
    order, previous = in_lane_order(items, work)
    before = np.full(len(items), NONE, np.int64)
    before[order] = previous
    before = before[work]
    has_launch, has_before = launcher[work] != NONE, before != NONE
    start = items.start_ns[work]
    latency = np.where(has_launch, start - items.start_ns[launcher[work]], 0)
    has_launch &= latency >= 0
    gap = np.where(has_before, start - items.end_ns[before], 0)
    overlap = np.maximum(-gap, 0)
    has_before &= overlap <= np.maximum(_MOST_OVERLAP * own_ns[before], _ROUNDING_NS)
    empty = has_launch & (~has_before | (items.end_ns[before] <= items.start_ns[launcher[work]]))
    usual_latency = min(_usual(latency[empty], latency[has_launch]), _MOST_LATENCY_NS)
    usual_gap = min(_usual(gap[has_launch & has_before & ~empty], gap[has_before & has_launch]), _USUAL_GAP_NS)

    delayed = np.where(has_before & ~empty, gap > _LONG_GAP_NS, latency > usual_latency + _LONG_GAP_NS)
    other = np.full(len(work), NONE, np.int64)
    for rank in np.unique(items.rank[work]).tolist():
        mine = items.rank[work] == rank
        other[mine] = latest_end_before(items, work[mine], start[mine])
    waits = delayed & (other != NONE) & (start - items.end_ns[other] <= _WAIT_LATENCY_NS)
    waits &= items.lane[other] != items.lane[work]
    waits &= ~has_launch | (items.end_ns[other] > items.start_ns[launcher[work]])
    edges.add(2 * other[waits] + 1, 2 * work[waits], (start - items.end_ns[other])[waits].astype(float), EdgeKind.EDGE)

    backlog = ~has_launch & ~has_before
    if behind:  # what the queue held before is not in the stretch
        backlog |= ~has_before & ~waits & (latency > usual_latency + _LONG_GAP_NS)
    by_launch = (empty & ~waits & ~backlog) | (latency <= 2 * usual_latency)
    needed = np.where(by_launch, latency, np.minimum(latency, usual_latency))
    edges.add(2 * launcher[work][has_launch], 2 * work[has_launch], needed[has_launch].astype(float), EdgeKind.LATENCY)
    free = (empty & has_launch) | waits
    needed = np.where(free, np.minimum(gap, usual_gap), gap)
    later = has_before & (gap >= 0)
    edges.add(2 * before[later] + 1, 2 * work[later], needed[later].astype(float), EdgeKind.STREAM)
    early = has_before & (gap < 0)
    edges.add(2 * before[early], 2 * work[early], gap[early].astype(float), EdgeKind.STREAM, before[early])
    since = (start - begin_ns)[backlog].astype(float)
    edges.add(np.full(backlog.sum(), BEGIN), 2 * work[backlog], since, EdgeKind.COMPUTE if behind else EdgeKind.EDGE)


def _usual(preferred: Ints, otherwise: Ints) -> float:
    values = preferred if len(preferred) else otherwise
    return float(np.percentile(values, _USUAL)) if len(values) else _USUAL_GAP_NS


def event_waits(stretches: list[Stretch], items: Items, edges: Edges) -> None:
    """Work that comes after a wait in its stream, after what came before the event in the other stream.

    Correlation ids grow in the order of the calls, so they tell what came before and after.
    """
    for number, stretch in enumerate(stretches):
        table = stretch.timeline.waits
        waits = np.flatnonzero((table.kind == WaitKind.STREAM_WAIT) & (table.on_correlation >= 0))
        mine = items.calls + np.flatnonzero(items.rank[items.calls :] == number)
        if not len(waits) or not len(mine):
            continue
        device = stretch.timeline.device
        stream, correlation = device.stream[items.row[mine]], device.correlation[items.row[mine]]
        target = np.full(len(waits), NONE, np.int64)
        source = np.full(len(waits), NONE, np.int64)
        for waiter in np.unique(stream).tolist():
            lane = np.flatnonzero(stream == waiter)
            lane = lane[np.argsort(correlation[lane], kind="stable")]
            waiting, waited = table.stream[waits] == waiter, table.on_stream[waits] == waiter
            after = np.searchsorted(correlation[lane], table.correlation[waits][waiting], side="right")
            target[waiting] = _pick(mine[lane], after)
            before = np.searchsorted(correlation[lane], table.on_correlation[waits][waited], side="left") - 1
            source[waited] = _pick(mine[lane], before)
        is_pair = (target != NONE) & (source != NONE)
        _add_waits(items, source[is_pair], target[is_pair], edges)


def _pick(items: Ints, at: Ints) -> Ints:
    """Items at these places; -1 for places outside."""
    inside = (at >= 0) & (at < len(items))
    return np.where(inside, items[np.clip(at, 0, len(items) - 1)], NONE)


def _add_waits(items: Items, source: Ints, target: Ints, edges: Edges) -> None:
    lag = items.start_ns[target] - items.end_ns[source]
    in_order = (lag >= 0) & (items.lane[source] != items.lane[target])
    latency = np.minimum(lag, _EVENT_LATENCY_NS)[in_order].astype(np.float64)
    edges.add(2 * source[in_order] + 1, 2 * target[in_order], latency, EdgeKind.EDGE)


def collectives(items: Items, groups: Ints, own_ns: Floats, edges: Edges) -> Ints:
    """Collectives across ranks end together: after the last has come, plus what the transfer takes.

    Args:
        items: of all ranks.
        groups: item numbers, one row a collective, one column a rank.
        own_ns: set to the transfer's time.
        edges: to add to.

    Returns:
        The items that end by these edges and not by their own start alone.
    """
    if not len(groups):
        return np.zeros(0, np.int64)
    latest = items.start_ns[groups].max(axis=1)
    together = (items.end_ns[groups] > latest[:, None]).all(axis=1)
    groups, latest = groups[together], latest[together]
    own_ns[groups] = items.end_ns[groups] - latest[:, None]
    for target in range(groups.shape[1]):
        for source in range(groups.shape[1]):
            ends = 2 * groups[:, target] + 1
            edges.add(2 * groups[:, source], ends, np.zeros(len(groups)), EdgeKind.EDGE, groups[:, target])
    return groups.ravel()
