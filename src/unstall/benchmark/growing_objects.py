"""What a program keeps that grows with its steps, from several looks at what its loop can reach."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from unstall.benchmark.thresholds import GRAPH_NODE_BYTES, GROWING_SHARE, KEPT_SHARE
from unstall.records.measurements import GrowingObject

Snapshot = Mapping[str, Any]
"""What the program kept at one step, as :func:`unstall.child.retention.probe` says it."""


def growing_objects(snapshots: Sequence[tuple[int, Snapshot]]) -> list[GrowingObject]:
    """What grows steadily over several looks (step, look), the most bytes a step first.

    It must have grown in at least 80 % of the intervals between the looks that saw it, and in one of the last two, and
    have kept half of all its rises: what fills up and stays, or empties again, is no leak. Rates are the median over
    the intervals.
    """
    if len(snapshots) < 2:
        return []
    by_object: dict[tuple[str, str, str], list[tuple[int, Snapshot]]] = {}
    for step, snapshot in sorted(snapshots, key=lambda item: item[0]):
        for path, entry in snapshot["entries"].items():
            if not entry["bounded"]:
                by_object.setdefault((path, entry["kind"], entry["file"]), []).append((step, entry))
    needed = 3 if len(snapshots) > 2 else 2
    growing = [
        grown
        for (path, _, _), entries in by_object.items()
        if len(entries) >= needed and (grown := _steady(path, entries)) is not None
    ]
    # Of equals, the smaller graph first: it is upstream of those that merely depend on it.
    growing.sort(key=lambda entry: (-_weight(entry), entry.graph_nodes))
    return [entry for entry in growing if not _explained_by_child(entry, growing)]


def _steady(path: str, entries: Sequence[tuple[int, Snapshot]]) -> GrowingObject | None:
    """One object with its rates, or None if it does not keep growing."""
    intervals = [
        (later - step, _change(old, new)) for (step, old), (later, new) in itertools.pairwise(entries) if later > step
    ]
    changes = [change for _, change in intervals]
    grew = [count > 0 or graph > 0 or (count >= 0 and size > 0) for count, size, graph in changes]
    if not grew or sum(grew) < GROWING_SHARE * len(grew) or not any(grew[-2:]):
        return None
    amounts = [count + size + GRAPH_NODE_BYTES * graph for count, size, graph in changes]
    if sum(amounts) < KEPT_SHARE * sum(max(0, amount) for amount in amounts):
        return None
    rates = ([change / steps for change in each] for steps, each in intervals)
    count, size, graph = (statistics.median(column) for column in zip(*rates))
    last = entries[-1][1]
    return GrowingObject(
        path=path,
        kind=last["kind"],
        file=last["file"],
        function=last["function"],
        len_per_step=count,
        bytes_per_step=size,
        graph_per_step=graph,
        graph_nodes=last["graph"]["nodes"] if last["graph"] else 0,
        wrapped=tuple(last["wrapped"]) if last.get("wrapped") else None,
    )


def _change(old: Snapshot, new: Snapshot) -> tuple[int, int, int]:
    """Growth of length, bytes and autograd nodes between two looks at one object."""
    nodes = 0
    if old["graph"] and new["graph"]:
        # A walk that was cut short counts no nodes, but still tells how far back the graph reaches.
        counted = old["graph"]["complete"] and new["graph"]["complete"]
        key = "nodes" if counted else "span"
        nodes = new["graph"][key] - old["graph"][key]
    return new["len"] - old["len"], new["bytes"] - old["bytes"], nodes


def _weight(growing: GrowingObject) -> float:
    return growing.bytes_per_step + GRAPH_NODE_BYTES * growing.graph_per_step


def _explained_by_child(growing: GrowingObject, others: Sequence[GrowingObject]) -> bool:
    """Whether an object of constant length grew only because something listed inside it did."""
    inside = (growing.path + "[", growing.path + ".")
    return growing.len_per_step <= 0 and any(other.path.startswith(inside) for other in others)
