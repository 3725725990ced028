"""How much of this process's cores other programs take while something is timed."""

from __future__ import annotations

import resource

from unstall.benchmark.cores import Cores


class Load:
    """The cores' busy seconds since it was made, less those of this process and its children."""

    def __init__(self) -> None:
        self._cores = Cores()
        self.busy, self.own = self._now()

    def of_others(self, seconds: float, forked_s: float = 0.0) -> float:
        """Cores that others took, mean over these seconds; orphans that were killed count as others.

        ``forked_s``: core-seconds of processes that are ours and no children of this one.
        """
        busy, own = self._now()
        outside = (busy - self.busy) - (own - self.own) - forked_s
        return max(0.0, outside / max(seconds, 1e-9) - self._cores.beyond_quota)

    def _now(self) -> tuple[float, float]:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return self._cores.busy_s(), sum(each.ru_utime + each.ru_stime for each in used)
