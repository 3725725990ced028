"""Edges of the host's program: what follows what on a thread, who hands over to whom, what waits for the device."""

from __future__ import annotations

import numpy as np

from unstall.trace import intervals
from unstall.trace.intervals import Intervals
from unstall.trace.replay.graph import EdgeKind, Edges, Floats, Items, in_lane_order, latest_end_before
from unstall.trace.replay.stretch import Stretch
from unstall.trace.thresholds import HOST_GAP_NS
from unstall.trace.timeline import NONE, HostKind, Ints

BEGIN, END = -1, -2

_HANDOFF_NS = 50_000
"""A thread that is quiet for this long may be waiting for another one."""
_OWN_WORK = 0.5
"""Share of a thread's quiet time: one that runs operators for more of it than this is not waiting."""
_QUICK_CALL_NS = 5_000
"""What a call that waits takes beside its waiting."""
_CLOCK_SLACK_NS = 5_000
"""Clocks of host and device agree to some microseconds."""


def thread_order(stretches: list[Stretch], items: Items, edges: Edges) -> None:
    """Each call after the one before it on its thread, or after the call of the thread that handed over to it."""
    begin = beginning(stretches)
    for number, stretch in enumerate(stretches):
        mine = np.flatnonzero(items.rank[: items.calls] == number)
        if len(mine):
            _rank_order(stretch, items, mine, edges, float(stretch.begin_ns + stretch.offset_ns - begin))


def beginning(stretches: list[Stretch]) -> int:
    """When the first rank begins."""
    return min(stretch.begin_ns + stretch.offset_ns for stretch in stretches)


def _rank_order(stretch: Stretch, items: Items, mine: Ints, edges: Edges, delay_ns: float) -> None:
    start, end, lane = items.start_ns, items.end_ns, items.lane
    order, before = in_lane_order(items, mine)
    first = before == NONE
    quiet_since = np.where(first, stretch.begin_ns + stretch.offset_ns, end[before])
    other = latest_end_before(items, mine, start[order])
    hands_over = (other != NONE) & (other != before) & (end[other] > quiet_since)
    hands_over &= (lane[other] != lane[order]) & (start[order] - quiet_since >= _HANDOFF_NS)
    hands_over &= first | (_own_work(stretch, items, order, quiet_since) < _OWN_WORK)

    goes_on = ~hands_over
    gap = (start[order] - quiet_since).astype(np.float64)
    source = np.where(first, BEGIN, 2 * before + 1)
    lag = gap + np.where(first, delay_ns, 0.0)
    edges.add(source[goes_on], 2 * order[goes_on], lag[goes_on], _host_kind(gap[goes_on]))
    # A rank that begins later than the others does so whatever its calls cost.
    edges.add(np.full(first.sum(), BEGIN), 2 * order[first], np.full(first.sum(), delay_ns), EdgeKind.EDGE)
    edges.add(source[hands_over], 2 * order[hands_over], np.zeros(hands_over.sum()), EdgeKind.EDGE)
    lag = (start[order] - end[other]).astype(np.float64)[hands_over]
    edges.add(2 * other[hands_over] + 1, 2 * order[hands_over], lag, _host_kind(lag))


def _host_kind(gap_ns: Floats) -> Ints:
    return np.where(gap_ns >= HOST_GAP_NS, EdgeKind.HOST, EdgeKind.SUBMITTING)


def _own_work(stretch: Stretch, items: Items, order: Ints, since: Ints) -> Floats:
    """Share of the time since then that each call's thread ran operators."""
    host = stretch.timeline.host
    share = np.zeros(len(order))
    threads = host.thread[items.row[order]]
    for thread in np.unique(threads).tolist():
        rows = (host.thread == thread) & (host.kind == HostKind.OPERATOR)
        busy = intervals.union(host.start_ns[rows] + stretch.offset_ns, host.end_ns[rows] + stretch.offset_ns)
        at = threads == thread
        quiet = Intervals(since[at], items.start_ns[order[at]])
        share[at] = busy.within(quiet) / np.maximum(quiet.end - quiet.start, 1)
    return share


def host_waits(stretches: list[Stretch], items: Items, launcher: Ints, own_ns: Floats, edges: Edges) -> None:
    """Synchronisation, copies that block, launches into a full queue; ``own_ns`` of these is left without the wait."""
    for number, stretch in enumerate(stretches):
        calls = np.flatnonzero(items.rank[: items.calls] == number)
        work = items.calls + np.flatnonzero(items.rank[items.calls :] == number)
        if len(calls) and len(work):
            _synchronisation(stretch, items, calls, work, launcher, own_ns, edges)
            _copies(stretch, items, calls, work, launcher, own_ns, edges)
            _back_pressure(stretch, items, calls, work, own_ns, edges, beginning(stretches))


def _synchronisation(
    stretch: Stretch, items: Items, calls: Ints, work: Ints, launcher: Ints, own_ns: Floats, edges: Edges
) -> None:
    """A synchronisation ends no sooner than the last work before it of each stream that agrees with that."""
    syncs = calls[stretch.activity.calls.sync[items.row[calls]]]
    if not len(syncs):
        return
    submitted = np.where(launcher[work] >= 0, items.start_ns[launcher[work]], items.start_ns[work])
    last_by_lane = []
    for lane in np.unique(items.lane[work]).tolist():
        mine = items.lane[work] == lane
        order = np.argsort(submitted[mine], kind="stable")
        of_lane, when = work[mine][order], submitted[mine][order]
        at = np.searchsorted(when, items.start_ns[syncs], side="left") - 1
        last = np.where(at >= 0, of_lane[np.maximum(at, 0)], NONE)
        agrees = (last != NONE) & (items.end_ns[last] <= items.end_ns[syncs] + _CLOCK_SLACK_NS)
        last_by_lane.append(np.where(agrees, last, NONE))
    last = np.stack(last_by_lane)
    ends = np.where(last != NONE, items.end_ns[last], np.iinfo(np.int64).min).max(axis=0)
    blocked = ends > items.start_ns[syncs]
    tail = np.where(blocked, np.maximum(items.end_ns[syncs] - ends, 0), np.minimum(own_ns[syncs], _QUICK_CALL_NS))
    own_ns[syncs] = np.where(blocked, np.minimum(own_ns[syncs], _QUICK_CALL_NS), own_ns[syncs])
    for lane_last in last:
        known = lane_last != NONE
        _wait(items, lane_last[known], syncs[known], tail[known], edges, EdgeKind.SYNC)


def _copies(
    stretch: Stretch, items: Items, calls: Ints, work: Ints, launcher: Ints, own_ns: Floats, edges: Edges
) -> None:
    rows = np.zeros(len(stretch.timeline.device), bool)
    rows[stretch.activity.calls.waited_copies] = True
    copies = work[rows[items.row[work]] & (launcher[work] >= 0)]
    call = launcher[copies]
    own_ns[call] = np.minimum(own_ns[call], _QUICK_CALL_NS)
    tail = np.maximum(items.end_ns[call] - items.end_ns[copies], 0)
    _wait(items, copies, call, tail, edges, EdgeKind.SYNC)


def _back_pressure(
    stretch: Stretch, items: Items, calls: Ints, work: Ints, own_ns: Floats, edges: Edges, begin_ns: int
) -> None:
    """A launch into a full queue returns when some earlier work is done, or what was submitted before the stretch."""
    full = calls[np.isin(items.row[calls], stretch.queue.held_up_rows)]
    done = latest_end_before(items, work, items.end_ns[full])
    if stretch.behind:
        earlier = full[done == NONE]
        own_ns[earlier] = np.minimum(own_ns[earlier], _QUICK_CALL_NS)
        since = (items.end_ns[earlier] - begin_ns).astype(np.float64)
        edges.add(np.full(len(earlier), BEGIN), 2 * earlier + 1, since, EdgeKind.COMPUTE)
    waited = (done != NONE) & (items.end_ns[done] > items.start_ns[full])
    done, full = done[waited], full[waited]
    own_ns[full] = np.minimum(own_ns[full], _QUICK_CALL_NS)
    _wait(items, done, full, items.end_ns[full] - items.end_ns[done], edges, EdgeKind.EDGE)


def _wait(items: Items, work: Ints, call: Ints, tail: Ints, edges: Edges, kind: EdgeKind) -> None:
    """Calls that end when device work has ended. Where the clocks say it ended later, count from its start."""
    in_order = items.end_ns[work] <= items.end_ns[call]
    edges.add(2 * work[in_order] + 1, 2 * call[in_order] + 1, tail[in_order].astype(np.float64), kind)
    work, call = work[~in_order], call[~in_order]
    edges.add(2 * work, 2 * call + 1, (items.end_ns[call] - items.end_ns[work]).astype(np.float64), kind, work)


def close(stretches: list[Stretch], items: Items, edges: Edges) -> tuple[int, int]:
    """The end comes after the host's last step and all device work. Returns recorded beginning and end."""
    begin = end = beginning(stretches)
    for number, stretch in enumerate(stretches):
        host_end = stretch.end_ns + stretch.offset_ns
        calls = np.flatnonzero(items.rank[: items.calls] == number)
        main = calls[stretch.timeline.host.thread[items.row[calls]] == stretch.timeline.main_thread]
        last = latest_end_before(items, main if len(main) else calls, np.array([host_end]))
        source = np.where(last != NONE, 2 * last + 1, BEGIN)
        since = items.end_ns[last] if last[0] != NONE else np.array([begin])
        rest = np.maximum(host_end - since, 0).astype(np.float64)
        edges.add(source, np.array([END]), rest, _host_kind(rest))
        end = max(end, host_end)
    ends = 2 * np.arange(len(items)) + 1
    edges.add(ends, np.full(len(items), END), np.zeros(len(items)), EdgeKind.EDGE)
    return begin, max(end, int(items.end_ns.max(initial=end)))
