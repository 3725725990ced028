"""The dependency graph of a replay: instants as nodes, and edges that say how long after another each can come."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from unstall.trace.timeline import NONE, Codes, Ids, Ints

Floats = NDArray[np.float64]


class EdgeKind(IntEnum):
    """What an edge's time is spent on."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2
    LAUNCH_CALL = 3
    """Inside a launch call."""
    OTHER_CALL = 4
    """Inside a call that is not blocked."""
    SYNC = 5
    """The host waits for the device; also the return from it."""
    SUBMITTING = 6
    """Host time between calls that follow each other closely."""
    HOST = 7
    """Host time without calls, long."""
    LOADER = 8
    LATENCY = 9
    """The time from a launch to its kernel's start."""
    STREAM = 10
    """Between two kernels of a stream."""
    EDGE = 11
    """A wait between streams or threads; what surrounds the replayed stretch."""


@dataclass(frozen=True)
class Items:
    """What is replayed: host calls first, then device work; one start and one end node each."""

    start_ns: Ints
    end_ns: Ints
    calls: int
    """How many of the items are host calls."""
    row: Ids
    """Row in the host or device table of its timeline."""
    rank: Ids
    """Index of its timeline."""
    lane: Ints
    """A number for its thread, or its device and stream; distinct over ranks."""
    kind: Codes
    """Kind of its own time."""

    def __len__(self) -> int:
        return len(self.start_ns)


def in_lane_order(items: Items, chosen: Ints) -> tuple[Ints, Ints]:
    """The chosen items lane by lane, as they start; and for each the one before it on its lane, or -1."""
    order = chosen[np.lexsort((items.start_ns[chosen], items.lane[chosen]))]
    before = np.concatenate(([NONE], order[:-1]))
    before[np.concatenate(([True], items.lane[order][1:] != items.lane[order][:-1]))] = NONE
    return order, before


def latest_end_before(items: Items, chosen: Ints, times: Ints) -> Ints:
    """For each time the chosen item that ended last before it, or -1."""
    if not len(chosen):
        return np.full(len(times), NONE, np.int64)
    by_end = chosen[np.argsort(items.end_ns[chosen], kind="stable")]
    at = np.searchsorted(items.end_ns[by_end], times, side="right") - 1
    return np.where(at >= 0, by_end[np.maximum(at, 0)], NONE)


@dataclass
class Edges:
    """Edges as they are collected: ``dst`` comes no sooner than ``src`` plus a constant plus an item's own time."""

    src: list[Ints] = field(default_factory=list)
    dst: list[Ints] = field(default_factory=list)
    constant: list[Floats] = field(default_factory=list)
    item: list[Ints] = field(default_factory=list)
    kind: list[Ints] = field(default_factory=list)

    def add(self, src: Ints, dst: Ints, constant: Floats, kind: EdgeKind | Ints, item: Ints | None = None) -> None:
        """Append edges; ``kind`` is of the constant, the item's own time has the item's kind."""
        n = len(src)
        if not n:
            return
        self.src.append(np.asarray(src, np.int64))
        self.dst.append(np.asarray(dst, np.int64))
        self.constant.append(np.asarray(constant, np.float64))
        self.item.append(np.full(n, NONE, np.int64) if item is None else np.asarray(item, np.int64))
        self.kind.append(np.broadcast_to(np.asarray(kind, np.int64), (n,)))


@dataclass(frozen=True)
class Graph:
    """A replay's graph, nodes in an order in which every edge goes forward.

    Node 0 is the beginning, the last one the end.
    """

    items: Items
    own_ns: Floats
    """Each item's own time: what a what-if scales."""
    pointer: Ints
    """In-edges of node i are ``pointer[i]`` to ``pointer[i + 1]``."""
    src: Ints
    constant: Floats
    item: Ints
    kind: Ints
    dropped: int
    """Dependencies that the recorded times contradict."""
    recorded_ns: float
    """Nanoseconds from where time counts to the end, as recorded."""
    source_item: Ints
    """Item whose node an edge comes from, -1 for the beginning."""
    target_item: Ints
    counted_from: int
    """The node from which on the device's time is the stretch's: the beginning, or the first of its work."""
    host_end: int
    """The node at which the last call ends, if time counts from work; else the beginning."""


def assemble(items: Items, own_ns: Floats, edges: Edges, begin_ns: int, end_ns: int, first: int = NONE) -> Graph:
    """Put nodes in order and edges into rows by target; ``first``: the item from whose start on time counts.

    In ``edges`` the start of item i is node 2 i, its end 2 i + 1, the beginning -1 and the end -2.
    """
    n = len(items)
    position = _positions(items)
    src, dst = np.concatenate(edges.src), np.concatenate(edges.dst)
    constant, item = np.concatenate(edges.constant), np.concatenate(edges.item)
    kind = np.concatenate(edges.kind)
    node_at = np.concatenate((position + 1, [2 * n + 1, 0]))  # -1 and -2 index from the back
    a, b = node_at[src], node_at[dst]
    forward = a < b
    sources, targets = _item_of(src), _item_of(dst)
    by_target = np.flatnonzero(forward)[np.argsort(b[forward], kind="stable")]
    pointer = np.concatenate(([0], np.cumsum(np.bincount(b[by_target], minlength=2 * n + 2))))
    counted_ns = begin_ns if first == NONE else int(items.start_ns[first])
    return Graph(
        items,
        own_ns,
        pointer,
        a[by_target],
        constant[by_target],
        item[by_target],
        kind[by_target],
        int((~forward).sum()),
        float(end_ns - counted_ns),
        sources[by_target],
        targets[by_target],
        0 if first == NONE else int(node_at[2 * first]),
        0 if first == NONE else int(node_at[1 : 2 * items.calls : 2].max(initial=0)),
    )


def _item_of(node: Ints) -> Ints:
    return np.where(node >= 0, node // 2, NONE)


def _positions(items: Items) -> Ints:
    """Each node's place by recorded time.

    At the same instant ends come before starts, so that what follows at once can depend on them; ends of device work
    come before those of calls, which may wait for it, and starts of calls before those of device work.
    """
    n = len(items)
    times = np.empty(2 * n, np.int64)
    times[0::2], times[1::2] = items.start_ns, np.maximum(items.end_ns, items.start_ns + 1)
    is_start = np.arange(2 * n) % 2 == 0
    is_call = np.repeat(np.arange(n) < items.calls, 2)
    order = np.lexsort((is_start ^ is_call ^ True, is_start, times))
    position = np.empty(2 * n, np.int64)
    position[order] = np.arange(2 * n)
    return position
