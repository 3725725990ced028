"""Looks at processes and at the machine, straight from /proc.

Made to be called several times a second: a look at a process is five small reads, some 50 µs. psutil takes several
times as long, and does not tell how long a thread waited for a core.
"""

from __future__ import annotations

import os

import psutil

from unstall.records.observations import ResourcePoint

_MOST_THREADS = 64  # of one process are asked for their scheduling delay


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
        try:
            threads = os.listdir(f"/proc/{pid}/task") if every_thread else [str(pid)]
        except OSError:
            return []
        return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]

    def look(self, pid: int, t: float) -> ResourcePoint | None:
        """The state of ``pid``, stamped with the time ``t``; None once it is gone."""
        # The name in parentheses may hold spaces and parentheses; fields count from after it.
        stat = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if not stat:
            return None
        main_cpu_s, run_delay_s = self._main_thread(pid)
        resident = _read(f"/proc/{pid}/statm").split()
        io = dict(line.split(b": ") for line in _read(f"/proc/{pid}/io").splitlines())
        return ResourcePoint(
            t=t,
            pid=pid,
            cpu_s=(int(stat[11]) + int(stat[12])) / self._ticks_per_s,
            main_cpu_s=main_cpu_s,
            run_delay_s=run_delay_s,
            rss_bytes=int(resident[1]) * self._page_bytes if resident else 0,
            # Not readable for another user's process: counted as none.
            read_bytes=int(io.get(b"read_bytes", 0)),
            write_bytes=int(io.get(b"write_bytes", 0)),
            read_chars=int(io.get(b"rchar", 0)),
            team_delay_s=self._team_delay(pid),
        )

    def machine_cpu(self) -> tuple[float, float]:
        """Busy and stolen core-seconds of the whole machine since it started."""
        line = _read("/proc/stat").partition(b"\n")[0].split()
        user, nice, system, _idle, _iowait, irq, softirq, steal = (int(x) for x in line[1:9])
        busy = user + nice + system + irq + softirq + steal
        return busy / self._ticks_per_s, steal / self._ticks_per_s

    def _team_delay(self, pid: int) -> float:
        """Seconds that all threads together were ready to run but had to wait; ended threads are forgotten."""
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return 0.0
        fields = [_read(f"/proc/{pid}/task/{thread}/schedstat").split() for thread in threads[:_MOST_THREADS]]
        return sum(int(schedstat[1]) for schedstat in fields if len(schedstat) >= 2) / 1e9

    def _main_thread(self, pid: int) -> tuple[float, float]:
        """Seconds the main thread ran, and seconds it was ready to run but had to wait."""
        fields = _read(f"/proc/{pid}/task/{pid}/schedstat").split()
        if len(fields) >= 2:
            return int(fields[0]) / 1e9, int(fields[1]) / 1e9
        # A kernel without scheduler statistics.
        stat = _read(f"/proc/{pid}/task/{pid}/stat").rpartition(b")")[2].split()
        return ((int(stat[11]) + int(stat[12])) / self._ticks_per_s if stat else 0.0), 0.0


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
