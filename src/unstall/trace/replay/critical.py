"""The critical path by operator: whose time it is that the step is made of."""

from __future__ import annotations

import numpy as np

from unstall.trace.blame import Blame
from unstall.trace.replay.graph import Graph, Kind
from unstall.trace.replay.stretch import Stretch
from unstall.trace.timeline import NONE, Ids, Ints

_OF_NO_OPERATOR = (Kind.HOST, Kind.LOADER, Kind.SYNC, Kind.STREAM, Kind.EDGE)
"""The program's own time and waits of threads and streams lie before an operator's work, but are not the operator's."""


def by_operator(graph: Graph, path: Ints, stretches: list[Stretch]) -> dict[str, float]:
    """Nanoseconds of a path under each outermost operator, the most first; time of none is left out.

    A call's and a kernel's own time is that of the operator around the call; the host's time between two calls, and
    the latency of a launch, is that of the later one's operator.
    """
    item = graph.item[path]
    own = np.append(graph.own_ns, 0.0)[item]  # an edge without an item is -1
    constant = np.where(np.isin(graph.kind[path], _OF_NO_OPERATOR), 0.0, graph.constant[path])
    items, ns = np.concatenate((item, graph.target_item[path])), np.concatenate((own, constant))
    some = (items >= 0) & (ns > 0)
    items, ns = items[some], ns[some]
    total: dict[str, float] = {}
    for number, stretch in enumerate(stretches):
        mine = np.flatnonzero((graph.items.rank[items] == number) & (graph.items.kind[items] != Kind.LOADER))
        blame = Blame(stretch.timeline)
        operators, of = np.unique(blame.origin(_calls(graph, items[mine], stretch)).operator, return_inverse=True)
        for row, amount in zip(operators.tolist(), np.bincount(of, weights=ns[mine]).tolist()):
            if row != NONE:
                total[blame.name(row)] = total.get(blame.name(row), 0.0) + amount
    return dict(sorted(total.items(), key=lambda entry: -entry[1]))


def _calls(graph: Graph, items: Ints, stretch: Stretch) -> Ids:
    """The host row of each item: of the call itself, or of the one that launched the work; -1 if not known."""
    rows = graph.items.row[items]
    is_call = items < graph.items.calls
    result = rows.copy()
    result[~is_call] = stretch.timeline.launch[rows[~is_call]]
    return result
