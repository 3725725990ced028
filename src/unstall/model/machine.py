"""A machine of a few cores that many threads share: the events of a simulated program, in order of time.

The law of the cores: k runnable threads on C cores each run at the rate min(1, C/k); a thread that waits for a disk,
a network or another thread takes no core. As every runnable thread has the same rate, one virtual clock serves all of
them: it gains a second when each of them has computed for a second (processor sharing; Kleinrock, *Queueing Systems*
II, 1976, 4.4), so a change of the load moves no event that is already in the queue.

A team of threads that share out an operator fares worse where cores are short: it is as fast as its slowest thread,
for which the others wait, spinning on cores that others could use. So teams have a clock of their own. What the
spinning takes, and how much slower the team is, was measured (``bench/model.py``, loops with two threads).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

from unstall.model import thresholds


class Mailbox:
    """Where one thread waits for what others give it: it yields the mailbox until there is something in ``items``."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.items: deque[int] = deque()
        self.reader: Thread | None = None

    def put(self, item: int) -> None:
        """Leave something, and let the thread that waits go on."""
        self.items.append(item)
        self.wake()

    def wake(self) -> None:
        """Let the thread that waits, if one does, look again."""
        reader, self.reader = self.reader, None
        if reader is not None:
            self.machine.resume(reader)


Thread = Iterator[tuple[float, float] | Mailbox]
"""A generator of what takes a thread time: seconds and the cores that it computes on (0: it waits), or a mailbox."""


class Machine:
    """Cores and a clock. Begin threads by :meth:`resume`, then :meth:`run`; times are seconds."""

    def __init__(self, cores: float, background: float = 0.0, contention: float = 0.0):
        """``background``: cores that other programs want all the time; ``contention``: see :func:`speed`."""
        self.contention = contention
        self.cores = cores
        self.now = 0.0
        self.busy = 0.0
        """Core-seconds that were computed, those of the background left out."""
        self._load = background
        self._team_load = 0.0
        self._ticket = 0
        self._virtual = [0.0, 0.0]
        self._computing: tuple[list[tuple[float, int, float, Thread]], ...] = ([], [])
        """Threads and teams, each by the virtual time of its clock at which it is done."""
        self._waiting: list[tuple[float, int, Thread]] = []

    def resume(self, thread: Thread) -> None:
        """Let a thread go on until something takes time, or it waits for others."""
        for request in thread:
            if type(request) is Mailbox:
                request.reader = thread
                return
            seconds, width = request  # type: ignore[misc]
            if seconds > 0.0:
                self._ticket += 1
                if not width:
                    heapq.heappush(self._waiting, (self.now + seconds, self._ticket, thread))
                    return
                self._load += width
                self.busy += seconds * width
                team = int(width > 1.0)
                self._team_load += width * team
                heapq.heappush(self._computing[team], (self._virtual[team] + seconds, self._ticket, width, thread))
                return

    def run(self) -> None:
        """Let time pass until nothing is left to happen."""
        (threads, teams), waiting, virtual = self._computing, self._waiting, self._virtual
        never = float("inf")
        while threads or teams or waiting:
            rate, team_rate = rates(self._load, self._team_load, self.cores, self.contention)
            thread_time = self.now + (threads[0][0] - virtual[0]) / rate if threads else never
            team_time = self.now + (teams[0][0] - virtual[1]) / team_rate if teams else never
            wait_time = waiting[0][0] if waiting else never
            time = min(wait_time, thread_time, team_time)
            virtual[0] += (time - self.now) * rate
            virtual[1] += (time - self.now) * team_rate
            self.now = time
            if time == wait_time:
                _, _, thread = heapq.heappop(waiting)
            else:
                team = int(team_time < thread_time)
                virtual[team], _, width, thread = heapq.heappop(self._computing[team])
                self._load -= width
                self._team_load -= width * team
            self.resume(thread)


def rates(load: float, team_load: float, cores: float, contention: float) -> tuple[float, float]:
    """Seconds of computing in a second, of a thread and of a team.

    ``load``: threads that want a core; ``team_load``: those of them that are in teams.
    """
    beyond = load - cores
    alike = speed(load, cores, contention)
    if beyond <= 0:
        return alike, alike
    short = min(beyond, 1.0)  # with less than a whole thread too many, a team waits that much less
    rate = alike * cores / (load + team_load * thresholds.TEAM_WASTE * short)
    return rate, rate * (1 - thresholds.TEAM_SLOWNESS * short)


def speed(busy: float, cores: float, contention: float) -> float:
    """Of a core, with so many busy, over its speed alone: with all of them busy, ``contention`` of it is lost.

    Cores share caches, memory, power, and often two of them are the hyperthreads of one.
    """
    if cores <= 1 or busy <= 1:
        return 1.0
    return 1 - contention * min(1.0, (busy - 1) / (cores - 1))
