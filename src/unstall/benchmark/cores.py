"""The cores that a program may run on, and how busy they are with whatever runs there."""

from __future__ import annotations

import os

from unstall.benchmark.environment import cpu_quota

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Cores:
    """The cores of a process, by its affinity when this is made.

    What others do on the rest of the machine is nothing to it: jobs of one node often have some of its cores each.

    Args:
        pid: of the process; 0 for this one, which is also taken for one that has ended.
    """

    def __init__(self, pid: int = 0) -> None:
        try:
            numbers = os.sched_getaffinity(pid)
        except OSError:
            numbers = os.sched_getaffinity(0)
        self._names = frozenset(f"cpu{number}".encode() for number in numbers)
        self.beyond_quota = max(0.0, len(numbers) - cpu_quota())
        """Cores of these that a control group's quota leaves to others at any time."""

    def busy_s(self) -> float:
        """Core-seconds since the machine started that they were busy, those that a hypervisor stole included."""
        busy = 0
        with open("/proc/stat", "rb") as statistics:
            for line in statistics:
                name, *fields = line.split(maxsplit=10)
                if name in self._names:
                    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields[:8])
                    busy += user + nice + system + irq + softirq + steal
                elif not name.startswith(b"cpu"):
                    break
        return busy / _TICKS_PER_S
