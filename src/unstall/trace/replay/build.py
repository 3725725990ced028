"""From stretches of timelines to a replay's graph."""

from __future__ import annotations

import numpy as np

from unstall.trace.replay import program, streams
from unstall.trace.replay.events import event_waits
from unstall.trace.replay.graph import Edges, Graph, Kind, assemble
from unstall.trace.replay.stretch import Stretch, items_of, launchers
from unstall.trace.timeline import NONE, Ids, Ints


def build(stretches: list[Stretch], matched: Ints | None = None) -> Graph:
    """The graph of one or several ranks' stretches.

    Args:
        stretches: one a rank.
        matched: device rows of the collectives that the ranks share, one row a collective, one column a rank.
    """
    items = items_of(stretches)
    own = np.maximum(items.end_ns - items.start_ns, 0).astype(np.float64)
    launcher = launchers(stretches, items)
    edges = Edges()
    program.host_waits(stretches, items, launcher, own, edges)
    program.thread_order(stretches, items, edges)
    streams.device_order(items, launcher, own, edges, program.beginning(stretches))
    event_waits(stretches, items, edges)
    groups = _items_of_rows(items.rank[items.calls :], items.row[items.calls :], matched, items.calls)
    shared = streams.collectives(items, groups, own, edges)
    alone = np.setdiff1d(np.arange(len(items)), shared)
    edges.add(2 * alone, 2 * alone + 1, np.zeros(len(alone)), Kind.EDGE, alone)
    begin, end = program.close(stretches, items, edges)
    return assemble(items, own, edges, begin, end)


def _items_of_rows(rank: Ids, row: Ids, matched: Ints | None, first: int) -> Ints:
    """Device rows of collectives as items; those with a rank outside its stretch are left out."""
    if matched is None or not len(matched):
        return np.zeros((0, 0), np.int64)
    columns = []
    for number in range(matched.shape[1]):
        mine = np.flatnonzero(rank == number)
        table = np.full(max(int(row.max(initial=0)), int(matched.max())) + 1, NONE, np.int64)
        table[row[mine]] = mine + first
        columns.append(table[matched[:, number]])
    groups = np.stack(columns, axis=1)
    return groups[(groups != NONE).all(axis=1)]
