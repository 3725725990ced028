"""What a run takes of the machine while it is under way, seen from outside: the cores' time, threads, locks on files.

A result that is the same is none the better for processes that keep all cores at work beside it, and a program that
holds a lock to its end has the next one wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from unstall.benchmark.process_readers import ProcessReader, threads_of
from unstall.prove import thresholds

if TYPE_CHECKING:
    from unstall.prove.timing import ProofPair

_EACH_S = 0.25  # a look is some fifty microseconds for each process


class MachineUse:
    """Looks at a process and all below it now and then."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._cpu_s: dict[int, float] = {}
        """Of each process, when it was seen last."""
        self._looks = self._locked = 0
        self.most_threads = 0
        """At once, of all processes."""
        self._next = 0.0
        self._reader = ProcessReader()

    def note(self) -> None:
        """Look, if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EACH_S
        pids = set(self._tree(self.pid))
        self.most_threads = max(self.most_threads, sum(len(threads_of(pid)) for pid in pids))
        for pid in pids:
            cpu_s = self._reader.cpu_s(pid)
            if cpu_s is not None:
                self._cpu_s[pid] = cpu_s
        self._looks += 1
        self._locked += not pids.isdisjoint(_locking())

    def _tree(self, pid: int) -> Iterator[int]:
        """A process and those below it."""
        yield pid
        for child in self._reader.children(pid, every_thread=True):
            yield from self._tree(child)

    @property
    def cpu_s(self) -> float:
        """Core-seconds of all processes that were seen."""
        return sum(self._cpu_s.values())

    @property
    def locked(self) -> float:
        """Share of the looks at which one of them held a lock on a file for itself."""
        return self._locked / self._looks if self._looks else 0.0


def more_of_it(pairs: Sequence[ProofPair]) -> str | None:
    """What the changed program takes of the machine and the original does not, in words.

    ``pairs``: whole runs that nothing watched.
    """
    if not pairs:
        return None
    before, after = (median(run.cpu_s for run in runs) for runs in zip(*((p.original, p.changed) for p in pairs)))
    if after > thresholds.MORE_CPU * before and after - before > thresholds.MORE_CPU_S:
        return f"it takes {after:.1f} s of the cores in a run, and the original {before:.1f} s"
    most = max(pair.original.most_threads for pair in pairs)
    least = min(pair.changed.most_threads for pair in pairs)
    if least > max(thresholds.MANY_THREADS, thresholds.MORE_THREADS * most):
        return f"it has {least} threads at once, and the original {most}"
    always = all(pair.changed.locked > thresholds.HOLDS_LOCK for pair in pairs)
    if always and not any(pair.original.locked > thresholds.HOLDS_LOCK for pair in pairs):
        return "it holds a lock on a file for much of the run, for which another run would wait"
    return None


def _locking() -> Iterator[int]:
    """The processes that hold a lock for themselves, as /proc/locks lists them (proc_locks(5))."""
    try:
        lines = Path("/proc/locks").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 4 and fields[3] == "WRITE":  # one that waits has an arrow in front
            yield int(fields[4])
