"""How much of the machine other programs take while something is timed."""

from __future__ import annotations

import resource

import psutil


class Load:
    """The machine's busy core-seconds since it was made, less those of this process and its children."""

    def __init__(self) -> None:
        self.busy, self.own = self._now()

    def of_others(self, seconds: float, forked_s: float = 0.0) -> float:
        """Cores that others took, mean over these seconds; orphans that were killed count as others.

        ``forked_s``: core-seconds of processes that are ours and no children of this one.
        """
        busy, own = self._now()
        return max(0.0, (busy - self.busy) - (own - self.own) - forked_s) / max(seconds, 1e-9)

    @staticmethod
    def _now() -> tuple[float, float]:
        times = psutil.cpu_times()
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return times.user + times.nice + times.system, sum(each.ru_utime + each.ru_stime for each in used)
