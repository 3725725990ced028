"""What the program used of the machine: CPU, memory, disk and GPUs, looked at a few times a second.

:class:`ResourceMonitor` collects points; the functions below it answer questions about them. Points
hold counters, so a question about any stretch of time is a difference of two interpolated values.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TypeVar

from unstall.benchmark.cores import Cores
from unstall.benchmark.gpus import Gpus
from unstall.benchmark.process_readers import ProcessReader
from unstall.benchmark.thresholds import LONG_RUN_S, LOOK_S, MOST_POINTS, SELDOM_LOOK_S, THINNED, THOROUGH_EVERY
from unstall.records.observations import MachinePoint, ResourcePoint

Point = TypeVar("Point", ResourcePoint, MachinePoint)


class ResourceMonitor:
    """Looks at a process, its descendants and the machine, in the caller's thread.

    Args:
        pid: the root of the process tree.
        period_s: time between two looks, seconds; :meth:`poll` does nothing in between. More of a long run.
        most_points: more are thinned.
    """

    def __init__(self, pid: int, *, period_s: float = LOOK_S, most_points: int = MOST_POINTS) -> None:
        self.pid = pid
        self.period_s = period_s
        self.most_points = most_points
        self.gpus = Gpus()
        self.points: list[ResourcePoint] = []
        """A point for each process at each look; all of a look bear the same time."""
        self.machine: list[MachinePoint] = []
        """A point for each look. Busy core-seconds leave out unstall's own."""
        self.ignore: set[int] = set()
        """Processes of unstall's own, the sampler's say, that are in no sum; left once ended."""
        self._reader = ProcessReader()
        self._cores = Cores(pid)
        self._began: float | None = None
        self._next = 0.0
        self._looks = 0
        self._tree: list[int] = [pid]
        self._own_cpu_s: dict[int, float] = {}
        self._ended_cpu_s = 0.0
        self._before: dict[int, ResourcePoint] = {}
        self._told_cpu_s = self._unseen_cpu_s = 0.0

    def poll(self, now: float) -> None:
        """Take a look if it is time to. ``now`` is ``time.monotonic()``."""
        if now < self._next:
            return
        self._began = now if self._began is None else self._began
        is_long = now - self._began > LONG_RUN_S
        self._next = now + max(self.period_s, SELDOM_LOOK_S if is_long else 0.0)
        self._look_at_tree(now)
        self._look_at_machine(now)
        self._looks += 1

    def rss_bytes(self) -> int:
        """Resident memory of the tree, at the last look."""
        last = self.points[-1].t if self.points else 0.0
        return sum(point.rss_bytes for point in self.points[-64:] if point.t == last)

    def _look_at_tree(self, now: float) -> None:
        self._tree = self._descendants(every_thread=self._looks % THOROUGH_EVERY == 0)
        looks = {pid: look for pid in self._tree if (look := self._reader.look(pid, now)) is not None}
        self._account(looks)
        self.points.extend(looks.values())
        if len(self.points) > self.most_points:
            self.points = thin(self.points)

    def _account(self, looks: dict[int, ResourcePoint]) -> None:
        """What was not seen of the processes that ended since the last look.

        Workers that are started anew for each epoch, or a command for each file, end between two looks. What a parent
        is told when it waits for them is all that they used. One that nobody waits for is told to nobody.
        """
        before, self._before = self._before, looks
        told = sum(look.children_cpu_s - before[pid].children_cpu_s for pid, look in looks.items() if pid in before)
        seen = sum(look.cpu_s + look.children_cpu_s for pid, look in before.items() if pid not in looks)
        self._told_cpu_s += told - seen
        self._unseen_cpu_s = max(self._unseen_cpu_s, self._told_cpu_s)

    def _look_at_machine(self, now: float) -> None:
        point = MachinePoint(
            t=now,
            busy_cpu_s=self._cores.busy_s() - self._unstall_cpu_s(now),
            unseen_cpu_s=self._unseen_cpu_s,
            beyond_quota=self._cores.beyond_quota,
            gpu_utilization=self.gpus.utilization(),
            gpu_memory_bytes=self.gpus.memory_bytes(),
            gpu_clocks=self.gpus.clocks(),
        )
        self.machine.append(point)
        if len(self.machine) > self.most_points:
            self.machine = thin(self.machine)

    def _descendants(self, *, every_thread: bool) -> list[int]:
        known = [] if every_thread else self._tree[1:]
        tree = dict.fromkeys([self.pid, *known])
        queue = list(tree)
        while queue:
            for child in self._reader.children(queue.pop(), every_thread=every_thread):
                if child not in tree and child not in self.ignore:
                    tree[child] = None
                    queue.append(child)
        return list(tree)

    def _unstall_cpu_s(self, now: float) -> float:
        """CPU seconds of this process and of those in ``ignore``, ended ones included."""
        for pid in list(self.ignore):
            point = self._reader.look(pid, now)
            if point is not None:
                self._own_cpu_s[pid] = point.cpu_s
            else:  # its number may be another process's soon
                self._ended_cpu_s += self._own_cpu_s.pop(pid, 0.0)
                self.ignore.discard(pid)
        own = os.times()
        return own.user + own.system + sum(self._own_cpu_s.values()) + self._ended_cpu_s


def cpu_between(points: Sequence[ResourcePoint], pids: Collection[int], t0: float, t1: float) -> float:
    """Core-seconds that the processes ``pids`` used from ``t0`` to ``t1``, by interpolation."""
    return growth(points, pids, t0, t1, "cpu_s")


def unseen_cpu_between(machine: Sequence[MachinePoint], t0: float, t1: float) -> float:
    """Core-seconds of the tree's processes after the last look at each, or between two looks that saw none of it."""
    unseen = [(point.t, point.unseen_cpu_s) for point in machine]
    return _at(unseen, t1) - _at(unseen, t0) if unseen else 0.0


def other_cores(machine: Sequence[MachinePoint], points: Sequence[ResourcePoint], t0: float, t1: float) -> float:
    """Cores that processes outside the tree took of those that it may use, mean from ``t0`` to ``t1``; at least 0.

    Time stolen by the hypervisor counts: a core lost to a neighbour is lost all the same. Where a quota allows less
    than all the cores, what others have of the rest does not.
    """
    if t1 <= t0 or not machine:
        return 0.0
    busy = [(point.t, point.busy_cpu_s) for point in machine]
    inside = cpu_between(points, {point.pid for point in points}, t0, t1) + unseen_cpu_between(machine, t0, t1)
    outside = _at(busy, t1) - _at(busy, t0) - inside
    return max(0.0, outside / (t1 - t0) - machine[-1].beyond_quota)


def thin(points: list[Point]) -> list[Point]:
    """The points with every other look of the older half left out; the last of a process stays."""
    times = sorted({point.t for point in points})
    dropped = set(times[1 : len(times) // 2 : 2])
    last = {getattr(point, "pid", None): point.t for point in points}
    thinned = [point for point in points if point.t not in dropped or last[getattr(point, "pid", None)] == point.t]
    # A program of very many short-lived processes: nothing but last points.
    return thinned if len(thinned) < THINNED * len(points) else points[::2]


def growth(points: Sequence[ResourcePoint], pids: Collection[int], t0: float, t1: float, counter: str) -> float:
    """How much a counter of the processes ``pids`` grew from ``t0`` to ``t1``, by interpolation, summed over them.

    One that was not there at the first look has begun since the look before it was seen, with nothing.
    """
    series: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    before = now = None
    for point in points:
        if point.t != now:
            before, now = now, point.t
        if point.pid in pids:
            if before is not None and point.pid not in series:
                series[point.pid].append((before, 0.0))
            series[point.pid].append((point.t, getattr(point, counter)))
    return sum(max(0.0, _at(values, t1) - _at(values, t0)) for values in series.values())


def _at(series: Sequence[tuple[float, float]], t: float) -> float:
    """A counter at the time ``t``: linear between two looks, constant before and after all."""
    index = bisect_right(series, t, key=lambda look: look[0])
    if index == 0:
        return series[0][1]
    if index == len(series):
        return series[-1][1]
    (before, low), (after, high) = series[index - 1 : index + 1]
    return low + (high - low) * (t - before) / (after - before)
