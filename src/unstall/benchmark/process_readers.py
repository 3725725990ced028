"""Looks at processes, straight from /proc.

Made to be called several times a second: a look at a process is five small reads, 50 µs where nothing else has the
core and 250 µs where a program keeps it busy. psutil takes several times as long, and does not tell how long a thread
waited for a core.
"""

from __future__ import annotations

import os

import psutil

from unstall.benchmark.thresholds import MOST_DELAYED_THREADS
from unstall.records.observations import ResourcePoint


class ProcessReader:
    """Reads /proc; see proc(5) for the fields."""

    def __init__(self) -> None:
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._lists_children = os.path.exists(f"/proc/self/task/{os.getpid()}/children")

    def children(self, pid: int, *, every_thread: bool) -> list[int]:
        """Children of ``pid``; without ``every_thread`` only those its main thread started."""
        if not self._lists_children:  # a kernel built without them: ask seldom, it is slow
            return _psutil_children(pid) if every_thread else []
        threads = threads_of(pid) if every_thread else [str(pid)]
        return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]

    def cpu_s(self, pid: int) -> float | None:
        """Core-seconds that ``pid`` has taken; None once it is gone."""
        stat = _state(pid)
        return (int(stat[11]) + int(stat[12])) / self._ticks_per_s if stat else None

    def look(self, pid: int, t: float) -> ResourcePoint | None:
        """The state of ``pid``, stamped with the time ``t``; None once it is gone."""
        stat = _state(pid)
        if not stat:
            return None
        own_s, kernel_s, *of_children = (int(ticks) / self._ticks_per_s for ticks in stat[11:15])
        pages = [int(field) for field in _read(f"/proc/{pid}/statm").split()] or [0] * 7
        io = dict(line.split(b": ") for line in _read(f"/proc/{pid}/io").splitlines())
        return ResourcePoint(
            t=t,
            pid=pid,
            cpu_s=own_s + kernel_s,
            run_delay_s=self._run_delay(pid, [str(pid)]),
            rss_bytes=pages[1] * self._page_bytes,
            # Not readable for another user's process: counted as none.
            read_bytes=int(io.get(b"read_bytes", 0)),
            write_bytes=int(io.get(b"write_bytes", 0)),
            read_chars=int(io.get(b"rchar", 0)),
            team_delay_s=self._run_delay(pid, threads_of(pid)[:MOST_DELAYED_THREADS]),
            kernel_s=kernel_s,
            page_faults=int(stat[7]),
            children_cpu_s=sum(of_children),
            mapped_bytes=(pages[0] + pages[5]) * self._page_bytes,
        )

    def _run_delay(self, pid: int, threads: list[str]) -> float:
        """Seconds that these threads were ready to run but had to wait; those that have ended are forgotten.

        0 for a kernel without scheduler statistics.
        """
        statistics = [_read(f"/proc/{pid}/task/{thread}/schedstat").split() for thread in threads]
        return sum(int(fields[1]) for fields in statistics if len(fields) >= 2) / 1e9


def _state(pid: int) -> list[bytes]:
    """The fields of ``/proc/pid/stat`` from the state on; none once it is gone."""
    # The name in parentheses may hold spaces and parentheses; fields count from after it.
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def threads_of(pid: int) -> list[str]:
    """The numbers of its threads; none once it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _psutil_children(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def _read(path: str) -> bytes:
    """A small file of /proc; empty if it may not be read or its process is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
