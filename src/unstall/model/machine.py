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
from collections.abc import Callable

_TEAM_WASTE, _TEAM_SLOWNESS = 0.25, 0.3

Then = Callable[[int], None]
"""What happens next, told the number of the batch that it happens to."""


class Machine:
    """Cores and a clock. Ask for a computation or a pause, then :meth:`run`; times are seconds."""

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
        self._computing: tuple[list[tuple[float, int, float, Then, int]], ...] = ([], [])
        """Threads and teams, each by the virtual time of its clock at which it is done."""
        self._pausing: list[tuple[float, int, Then, int]] = []

    def compute(self, seconds: float, width: float, then: Then, batch: int) -> None:
        """Compute for ``seconds`` on ``width`` cores at once, longer where these are taken; then go on."""
        if seconds <= 0.0:
            self.pause(0.0, then, batch)
            return
        self._ticket += 1
        self._load += width
        self.busy += seconds * width
        team = int(width > 1.0)
        self._team_load += width * team
        heapq.heappush(self._computing[team], (self._virtual[team] + seconds, self._ticket, width, then, batch))

    def pause(self, seconds: float, then: Then, batch: int) -> None:
        """Let ``seconds`` pass on no core, then go on."""
        self._ticket += 1
        heapq.heappush(self._pausing, (self.now + seconds, self._ticket, then, batch))

    def run(self) -> None:
        """Let time pass until nothing is left to happen."""
        (threads, teams), pausing, virtual = self._computing, self._pausing, self._virtual
        never = float("inf")
        while threads or teams or pausing:
            rate, team_rate = rates(self._load, self._team_load, self.cores, self.contention)
            thread_time = self.now + (threads[0][0] - virtual[0]) / rate if threads else never
            team_time = self.now + (teams[0][0] - virtual[1]) / team_rate if teams else never
            pause_time = pausing[0][0] if pausing else never
            time = min(pause_time, thread_time, team_time)
            virtual[0] += (time - self.now) * rate
            virtual[1] += (time - self.now) * team_rate
            self.now = time
            if time == pause_time:
                _, _, then, batch = heapq.heappop(pausing)
            else:
                team = int(team_time < thread_time)
                virtual[team], _, width, then, batch = heapq.heappop(self._computing[team])
                self._load -= width
                self._team_load -= width * team
            then(batch)


def rates(load: float, team_load: float, cores: float, contention: float) -> tuple[float, float]:
    """Seconds of computing in a second, of a thread and of a team.

    ``load``: threads that want a core; ``team_load``: those of them that are in teams.
    """
    beyond = load - cores
    alike = speed(load, cores, contention)
    if beyond <= 0:
        return alike, alike
    short = min(beyond, 1.0)  # with less than a whole thread too many, a team waits that much less
    rate = alike * cores / (load + team_load * _TEAM_WASTE * short)
    return rate, rate * (1 - _TEAM_SLOWNESS * short)


def speed(busy: float, cores: float, contention: float) -> float:
    """Of a core, with so many busy, over its speed alone: with all of them busy, ``contention`` of it is lost.

    Cores share caches, memory, power, and often two of them are the hyperthreads of one.
    """
    if cores <= 1 or busy <= 1:
        return 1.0
    return 1 - contention * min(1.0, (busy - 1) / (cores - 1))
