"""What-ifs: what a user or a pattern asks for, in words, as a change of the replay's graph.

``launch=0`` launches cost nothing (what CUDA graphs could gain at most), ``sync=0`` the host never waits for the
device, ``data=0`` the next batch is always there, ``host=0`` other host work is free, ``nccl=0.5x`` collectives take
half as long, ``copies=0``, ``compute=0.5x``, ``aten::mm=0.5x`` an operator's, range's or kernel's device time;
``nccl=overlapped`` and ``copies=overlapped`` nothing waits for them, ``copies=pinned`` the host does not.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

import numpy as np

from unstall.trace.replay.graph import EdgeKind, Graph
from unstall.trace.replay.simulate import GraphChange
from unstall.trace.replay.stretch import Stretch
from unstall.trace.timeline import Flags, Timeline, TraceError

_FACTOR = re.compile(r"^(\d+(?:\.\d*)?|\.\d+)\s*[x×]?$")
_HOW = ("overlapped", "pinned")


@dataclass(frozen=True)
class TraceWhatIf:
    """One what-if as it was asked for."""

    what: str
    factor: float | None
    """Factor of the recorded time; None where ``how`` says it."""
    how: str = ""

    def __str__(self) -> str:
        if self.how:
            return f"{self.what}={self.how}"
        return f"{self.what}={self.factor:g}" + ("x" if self.factor else "")


def parse(text: str) -> TraceWhatIf:
    """From ``launch=0``, ``nccl=0.5x``, ``copies=pinned``; TraceError says what is wrong."""
    what, equals, how = text.rpartition("=")
    what, how = what.strip(), how.strip().lower()
    if not equals or not what:
        raise TraceError(f"--what-if {text}: write NAME=FACTOR, such as launch=0, nccl=0.5x or aten::mm=0.5x")
    if factor := _FACTOR.match(how):
        return TraceWhatIf(_ALIASES.get(what.lower(), what), float(factor[1]))
    name = _ALIASES.get(what.lower(), what)
    if how in _HOW and name in ("nccl", "copies") and (how, name) != ("pinned", "nccl"):
        return TraceWhatIf(name, None, how)
    raise TraceError(f"--what-if {text}: {how!r} is no factor; 0 means free, 0.5x half the time")


_ALIASES = {
    "launches": "launch", "graphs": "launch", "syncs": "sync", "loader": "data", "dataloader": "data", "input": "data",
    "comm": "nccl", "communication": "nccl", "rccl": "nccl", "copy": "copies", "transfer": "copies", "python": "host",
    "kernels": "compute", "gpu": "compute",
}  # fmt: skip


def change(what_if: TraceWhatIf, graph: Graph, stretches: list[Stretch]) -> GraphChange:
    """The graph's change. TraceError when nothing in the trace has that name."""
    result = GraphChange.none(graph)
    if what_if.how == "pinned":  # copies no longer hold up the host; the stream still has them in its order
        result.drop |= _waits_for(graph, EdgeKind.COPY)
        return result
    if what_if.how == "overlapped":
        _overlap(graph, result, EdgeKind.COMMUNICATION if what_if.what == "nccl" else EdgeKind.COPY)
        return result
    factor = what_if.factor if what_if.factor is not None else 1.0
    if what_if.what in _KINDS:
        items, edges = _KINDS[what_if.what]
        result.own[np.isin(graph.items.kind, items)] = factor
        result.constant[np.isin(graph.kind, edges)] = factor
        if what_if.what == "sync" and factor == 0:
            result.drop |= graph.kind == EdgeKind.SYNC
        return result
    result.own[_items_named(what_if.what, graph, stretches)] = factor
    return result


_KINDS: dict[str, tuple[list[EdgeKind], list[EdgeKind]]] = {
    "launch": ([EdgeKind.LAUNCH_CALL], [EdgeKind.SUBMITTING, EdgeKind.LATENCY]),
    "sync": ([], [EdgeKind.SYNC]),
    "data": ([EdgeKind.LOADER], []),
    "host": ([], [EdgeKind.HOST]),
    "nccl": ([EdgeKind.COMMUNICATION], []),
    "copies": ([EdgeKind.COPY], []),
    "compute": ([EdgeKind.COMPUTE], [EdgeKind.COMPUTE]),
}
"""Kinds of items whose own time, and of edges whose constant, the factor applies to."""


def _overlap(graph: Graph, result: GraphChange, kind: EdgeKind) -> None:
    """Work of this kind takes no time that anything waits for; all of it must still fit into the step."""
    chosen = graph.items.kind == kind
    result.own[chosen] = 0
    result.drop |= _waits_for(graph, kind)
    by_rank = np.bincount(graph.items.rank[chosen], weights=graph.own_ns[chosen])
    result.least_ns = float(by_rank.max(initial=0.0))


def _waits_for(graph: Graph, kind: EdgeKind) -> Flags:
    """Edges by which the host waits for work of a kind."""
    kinds = np.append(graph.items.kind, 255)
    return np.asarray((graph.kind == EdgeKind.SYNC) & (kinds[graph.source_item] == kind))


def _items_named(name: str, graph: Graph, stretches: list[Stretch]) -> Flags:
    chosen = np.zeros(len(graph.items), bool)
    for number, stretch in enumerate(stretches):
        mine = np.flatnonzero((graph.items.rank == number) & (np.arange(len(graph.items)) >= graph.items.calls))
        chosen[mine] = _rows_named(name, stretch.timeline)[graph.items.row[mine]]
    if not chosen.any():
        raise TraceError(_unknown(name, stretches))
    return chosen


def _rows_named(name: str, timeline: Timeline) -> Flags:
    """Device rows inside a host event of that name, or whose kernel's name holds it."""
    inside = np.zeros(len(timeline.device), bool)
    chosen = timeline.names_where(lambda known: name in (known, known.strip("# ")))[timeline.host.name]
    at = timeline.launch.copy()
    while chosen.any() and (at >= 0).any():
        inside |= (at >= 0) & chosen[at]
        at = np.where(at >= 0, timeline.parent[at], -1)
    if inside.any():
        return inside
    return timeline.names_where(lambda candidate: name in candidate)[timeline.device.name]


def _unknown(name: str, stretches: list[Stretch]) -> str:
    names = {known for stretch in stretches for known in stretch.timeline.names if len(known) < 80}
    close = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    return f"--what-if {name}: no operator, range or kernel of that name did work on a device{hint}"
