"""A machine of a few cores that many threads share: the events of a simulated program, in order of time.

The law of the cores: k runnable threads on C cores each run at the rate min(1, C/k); a thread that waits for a disk,
a network or another thread takes no core. As every runnable thread has the same rate, one virtual clock serves all of
them: it gains a second when each of them has computed for a second (processor sharing; Kleinrock, *Queueing Systems*
II, 1976, 4.4), so a change of the load moves no event that is already in the queue.

A team of threads that share out an operator needs more than its fair share: its threads wait for the slowest of them,
spinning on their cores. ``_TEAM_WASTE`` is what that takes where cores are short (see ``bench/model.py``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

_TEAM_WASTE = 0.25
"""Of a team's cores, lost to waiting for its slowest thread where there are more runnable threads than cores."""

Then = Callable[[int], None]
"""What happens next, told the number of the batch that it happens to."""


class Machine:
    """Cores and a clock. Ask for a computation or a pause, then :meth:`run`; times are seconds."""

    def __init__(self, cores: float, background: float = 0.0):
        """``background``: cores that other programs want all the time."""
        self.cores = cores
        self.now = 0.0
        self.busy = 0.0
        """Core-seconds that were computed, those of the background left out."""
        self._virtual = 0.0
        self._load = background
        self._waste = 0.0
        self._ticket = 0
        self._computing: list[tuple[float, int, float, Then, int]] = []
        self._pausing: list[tuple[float, int, Then, int]] = []

    def compute(self, seconds: float, width: float, then: Then, batch: int) -> None:
        """Compute for ``seconds`` on ``width`` cores at once, longer where these are taken; then go on."""
        if seconds <= 0.0:
            self.pause(0.0, then, batch)
            return
        self._ticket += 1
        self._load += width
        if width > 1.0:
            self._waste += width * _TEAM_WASTE
        self.busy += seconds * width
        heapq.heappush(self._computing, (self._virtual + seconds, self._ticket, width, then, batch))

    def pause(self, seconds: float, then: Then, batch: int) -> None:
        """Let ``seconds`` pass on no core, then go on."""
        self._ticket += 1
        heapq.heappush(self._pausing, (self.now + seconds, self._ticket, then, batch))

    def run(self) -> None:
        """Let time pass until nothing is left to happen."""
        computing, pausing = self._computing, self._pausing
        while computing or pausing:
            beyond = self._load - self.cores
            # With less than a whole thread too many, the team waits that much less.
            rate = self.cores / (self._load + self._waste * min(beyond, 1.0)) if beyond > 0 else 1.0
            computed = self.now + (computing[0][0] - self._virtual) / rate if computing else float("inf")
            if pausing and pausing[0][0] <= computed:
                time, _, then, batch = heapq.heappop(pausing)
                self._virtual += (time - self.now) * rate
                self.now = time
            else:
                self._virtual, _, width, then, batch = heapq.heappop(computing)
                self.now = computed
                self._load -= width
                if width > 1.0:
                    self._waste -= width * _TEAM_WASTE
            then(batch)
