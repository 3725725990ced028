"""Edges of recorded events: a stream that waits for an event of another one (cudaStreamWaitEvent)."""

from __future__ import annotations

import numpy as np

from unstall.trace.replay.graph import Edges, Items, Kind
from unstall.trace.replay.stretch import Stretch
from unstall.trace.timeline import NONE, Ints, WaitKind

_LATENCY_NS = 2_000
"""From an event to what waited for it, where nothing else held that up."""


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
        for one in np.unique(stream).tolist():
            lane = np.flatnonzero(stream == one)
            lane = lane[np.argsort(correlation[lane], kind="stable")]
            waiting, waited = table.stream[waits] == one, table.on_stream[waits] == one
            after = np.searchsorted(correlation[lane], table.correlation[waits][waiting], side="right")
            target[waiting] = _pick(mine[lane], after)
            before = np.searchsorted(correlation[lane], table.on_correlation[waits][waited], side="left") - 1
            source[waited] = _pick(mine[lane], before)
        some = (target != NONE) & (source != NONE)
        _add(items, source[some], target[some], edges)


def _pick(items: Ints, at: Ints) -> Ints:
    """Items at these places; -1 for places outside."""
    inside = (at >= 0) & (at < len(items))
    return np.where(inside, items[np.clip(at, 0, len(items) - 1)], NONE)


def _add(items: Items, source: Ints, target: Ints, edges: Edges) -> None:
    lag = items.start_ns[target] - items.end_ns[source]
    kept = (lag >= 0) & (items.lane[source] != items.lane[target])
    held = np.minimum(lag, _LATENCY_NS)[kept].astype(np.float64)
    edges.add(2 * source[kept] + 1, 2 * target[kept], held, Kind.EDGE)
