"""A replay of one or several ranks: does it reproduce the recording, what would a change gain, what is critical."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from unstall.trace.activity import Activity
from unstall.trace.blame import TraceBlame
from unstall.trace.queue import Queue
from unstall.trace.replay import program, streams
from unstall.trace.replay.graph import EdgeKind, Edges, Graph, Items, assemble
from unstall.trace.replay.simulate import GraphChange, SimulatedReplay, critical_path, path_by_kind, simulate
from unstall.trace.replay.stretch import Stretch, items_of, launchers
from unstall.trace.replay.whatif import change, parse
from unstall.trace.steps import StepWindows
from unstall.trace.thresholds import REPLAY_ERROR
from unstall.trace.timeline import NONE, Ids, Ints

MOST_WORK = 20_000
"""Device events that are replayed, in a second or two; of a longer trace the steps nearest to the mean stand in."""
_OF_NO_OPERATOR = (EdgeKind.HOST, EdgeKind.LOADER, EdgeKind.SYNC, EdgeKind.STREAM, EdgeKind.EDGE)
"""The program's own time and waits of threads and streams lie before an operator's work, but are not the operator's."""


class Replay:
    """The dependency graph of a trace, run under what-ifs."""

    def __init__(self, stretches: list[Stretch], steps: int, of: int, matched: Ints | None = None):
        self.stretches = stretches
        self.steps = steps
        self.of = of
        self._matched = matched
        self._gains: dict[str, float] = {}

    @cached_property
    def graph(self) -> Graph:
        return build(self.stretches, self._matched)

    @cached_property
    def base(self) -> SimulatedReplay:
        return simulate(self.graph)

    @property
    def error(self) -> float:
        """Simulated over recorded time, less one."""
        recorded = self.graph.recorded_ns
        return self._base_ns / recorded - 1 if recorded else 0.0

    @property
    def faithful(self) -> bool:
        """Whether it gives the recorded time within 2 %."""
        return abs(self.error) <= REPLAY_ERROR

    @property
    def partial(self) -> bool:
        """Whether only some of the steps are replayed."""
        return self.steps < self.of

    def gain(self, what_if: str) -> float:
        """Recorded step time over the predicted one.

        Raises:
            TraceError: the what-if cannot be read, or names nothing in the trace.
        """
        if what_if not in self._gains:
            question = parse(what_if)
            changed = change(question, self.graph, self.stretches)
            gain = self._base_ns / max(self._length_ns(simulate(self.graph, changed), changed), changed.least_ns, 1.0)
            self._gains[what_if] = max(gain, 1.0) if question.factor is None or question.factor <= 1 else gain
        return self._gains[what_if]

    @cached_property
    def _base_ns(self) -> float:
        return self._length_ns(self.base, GraphChange.none(self.graph))

    def _length_ns(self, run: SimulatedReplay, changed: GraphChange) -> float:
        """Of the steps: until all is done; or the device's, from the first of their work, if it is a step behind.

        That of the host is as long as it would be if the device took no time, which is what holds it up.
        """
        graph = self.graph
        length_ns = run.end_ns - float(run.time_ns[graph.counted_from])
        if graph.host_end:
            free = changed.without(graph, EdgeKind.COMPUTE, EdgeKind.COPY, EdgeKind.COMMUNICATION)
            length_ns = max(length_ns, float(simulate(graph, free).time_ns[graph.host_end]))
        return length_ns

    @cached_property
    def critical(self) -> dict[str, float]:
        """Share of the critical path by kind of time."""
        total = path_by_kind(self.graph, self._path)
        total_ns = max(sum(total.values()), 1.0)
        return {kind.name.lower(): ns / total_ns for kind, ns in total.items() if ns > 0}

    @cached_property
    def critical_operators(self) -> dict[str, float]:
        """Share of the critical path by operator, the most first; what is of none is left out."""
        total_ns = max(sum(path_by_kind(self.graph, self._path).values()), 1.0)
        return {name: ns / total_ns for name, ns in by_operator(self.graph, self._path, self.stretches).items()}

    @cached_property
    def _path(self) -> Ints:
        return critical_path(self.graph, self.base)


def representative(activity: Activity, windows: StepWindows) -> tuple[int, int]:
    """First and last-plus-one of the adjoining steps to replay: all, or as many as fit, nearest to the mean step."""
    start = activity.timeline.device.start_ns
    work = np.searchsorted(start, np.append(windows.start_ns, windows.end_ns[-1]))
    if work[-1] - work[0] <= MOST_WORK or len(windows) == 1:
        return 0, len(windows)
    count = max(1, int(MOST_WORK // max((work[-1] - work[0]) / len(windows), 1)))
    edges = np.append(windows.start_ns, windows.end_ns[-1])
    mean = (edges[count:] - edges[:-count]) / count
    first = int(np.argmin(np.abs(mean - windows.dur_ns.mean())))
    return first, first + count


def stretch_of(
    activity: Activity, queue: Queue, windows: StepWindows, steps: tuple[int, int], offset_ns: int = 0
) -> Stretch:
    """The stretch of these steps; a single step of too much work is cut short."""
    first, last = steps
    begin = int(windows.host_start_ns[first])
    marked = activity.timeline.steps
    end = int(marked.end_ns[first:last].max()) if windows.marked else int(windows.end_ns[last - 1])
    end = max(end, int(windows.host_start_ns[last]) if last < len(windows) else end)
    start = activity.timeline.device.start_ns
    beyond = int(np.searchsorted(start, begin)) + 2 * MOST_WORK
    if beyond < len(start):
        end = min(end, int(start[beyond]))
    return Stretch(activity, queue, begin, end, offset_ns, behind=windows.submitted_ns is not None)


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
    behind = all(stretch.behind for stretch in stretches)
    streams.device_order(items, launcher, own, edges, program.beginning(stretches), behind=behind)
    streams.event_waits(stretches, items, edges)
    groups = _items_of_rows(items.rank[items.calls :], items.row[items.calls :], matched, items.calls)
    shared = streams.collectives(items, groups, own, edges)
    alone = np.setdiff1d(np.arange(len(items)), shared)
    edges.add(2 * alone, 2 * alone + 1, np.zeros(len(alone)), EdgeKind.EDGE, alone)
    begin, end = program.close(stretches, items, edges)
    # A device that is a step behind does the work of an earlier step before.
    first = _first_submitted(items, launcher) if behind else NONE
    return assemble(items, own, edges, begin, end, first)


def _first_submitted(items: Items, launcher: Ints) -> int:
    submitted = np.flatnonzero(launcher >= 0)
    return int(submitted[np.argmin(items.start_ns[submitted])]) if len(submitted) else NONE


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


def by_operator(graph: Graph, path: Ints, stretches: list[Stretch]) -> dict[str, float]:
    """Nanoseconds of a path under each outermost operator, the most first; time of none is left out.

    A call's and a kernel's own time is that of the operator around the call; the host's time between two calls, and
    the latency of a launch, is that of the later one's operator.
    """
    item = graph.item[path]
    own = np.append(graph.own_ns, 0.0)[item]  # an edge without an item is -1
    constant = np.where(np.isin(graph.kind[path], _OF_NO_OPERATOR), 0.0, graph.constant[path])
    items, ns = np.concatenate((item, graph.target_item[path])), np.concatenate((own, constant))
    spent = (items >= 0) & (ns > 0)
    items, ns = items[spent], ns[spent]
    total: dict[str, float] = {}
    for number, stretch in enumerate(stretches):
        mine = np.flatnonzero((graph.items.rank[items] == number) & (graph.items.kind[items] != EdgeKind.LOADER))
        blame = TraceBlame(stretch.timeline)
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
