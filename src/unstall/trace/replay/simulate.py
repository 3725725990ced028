"""Run a replay's graph: when each instant comes, under what-ifs, and along which path the end is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unstall.trace.library import address, library
from unstall.trace.replay.graph import EdgeKind, Floats, Graph
from unstall.trace.timeline import NONE, Flags, Ints


@dataclass
class GraphChange:
    """A what-if in the graph's terms."""

    own: Floats
    """Factor of each item's own time."""
    constant: Floats
    """Factor of each edge's constant."""
    drop: Flags
    """Edges that no longer hold."""
    least_ns: float = 0.0
    """What is left even so: work that is hidden must still be done."""

    @classmethod
    def none(cls, graph: Graph) -> GraphChange:
        """Everything as it was recorded."""
        edges = len(graph.src)
        return cls(np.ones(len(graph.own_ns)), np.ones(edges), np.zeros(edges, bool))

    def without(self, graph: Graph, *kinds: EdgeKind) -> GraphChange:
        """The same, and what is of these kinds takes no time."""
        own = np.where(np.isin(graph.items.kind, kinds), 0.0, self.own)
        constant = np.where(np.isin(graph.kind, kinds), 0.0, self.constant)
        return GraphChange(own, constant, self.drop, self.least_ns)


@dataclass(frozen=True)
class SimulatedReplay:
    """A simulated replay."""

    time_ns: Floats
    """When each node comes."""
    binding: Ints
    """The edge that each node waited for; -1 for the beginning."""

    @property
    def end_ns(self) -> float:
        return float(self.time_ns[-1])


def lags(graph: Graph, change: GraphChange) -> Floats:
    """The time of each edge under a change."""
    own = np.append(graph.own_ns * change.own, 0.0)
    return graph.constant * change.constant + own[graph.item]


def simulate(graph: Graph, change: GraphChange | None = None) -> SimulatedReplay:
    """When each node comes: the longest path to it. One pass, as every edge goes forward."""
    change = change or GraphChange.none(graph)
    lag = np.where(change.drop, -np.inf, lags(graph, change))
    functions = library()
    return (
        SimulatedReplay(*longest_paths(functions, graph.pointer, graph.src, lag))
        if functions
        else _simulate(graph, lag)
    )


def longest_paths(functions: Any, pointer: Ints, src: Ints, lag: Floats) -> tuple[Floats, Ints]:
    """By the library in C: when each node comes, and the edge that it waits for.

    Raises:
        ValueError: these are no graph's, or have an edge that goes backward.
    """
    nodes, edges = max(len(pointer) - 1, 0), len(src)
    pointer, src = np.ascontiguousarray(pointer), np.ascontiguousarray(src)
    lag = np.ascontiguousarray(lag)
    times, binding = np.empty(nodes), np.empty(nodes, np.int64)
    inputs = (
        address(pointer, np.int64, nodes + 1),
        address(src, np.int64, edges),
        address(lag, np.float64, edges),
    )
    outputs = address(times, np.float64, nodes), address(binding, np.int64, nodes)
    if not functions.longest_paths(nodes, edges, *inputs, *outputs):
        raise ValueError("an edge that goes backward, or is none of the graph's")
    return times, binding


def _simulate(graph: Graph, lag: Floats) -> SimulatedReplay:
    """The same in Python, where there was no C compiler."""
    src, pointer, lag_of = graph.src.tolist(), graph.pointer.tolist(), lag.tolist()
    nodes = len(pointer) - 1
    times, binding = [0.0] * nodes, [NONE] * nodes
    for node in range(1, nodes):
        latest, which = 0.0, NONE
        for edge in range(pointer[node], pointer[node + 1]):
            at = times[src[edge]] + lag_of[edge]
            if at >= latest:
                latest, which = at, edge
        times[node], binding[node] = latest, which
    return SimulatedReplay(np.array(times), np.array(binding, np.int64))


def critical_path(graph: Graph, run: SimulatedReplay) -> Ints:
    """Edges of the longest path, from the end back to where time counts."""
    path = []
    node = len(graph.pointer) - 2
    while node > graph.counted_from and (edge := int(run.binding[node])) != NONE:
        path.append(edge)
        node = int(graph.src[edge])
    return np.array(path, np.int64)


def path_by_kind(graph: Graph, path: Ints) -> dict[EdgeKind, float]:
    """Nanoseconds of a path by kind, from its edges as recorded."""
    total = np.zeros(len(EdgeKind))
    np.add.at(total, graph.kind[path], graph.constant[path])
    with_item = path[graph.item[path] >= 0]
    items = graph.item[with_item]
    np.add.at(total, graph.items.kind[items], graph.own_ns[items])
    return {kind: float(total[kind]) for kind in EdgeKind}
