"""What a run takes of the machine while it is under way, seen from outside: the cores' time, threads, open files,
addresses, locks on files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from unstall.benchmark.process_readers import ProcessReader, threads_of

_SOCKET = "socket:["
_EACH_S = 0.25  # a look is some fifty microseconds for each process


class MachineUse:
    """Looks at a process and all below it now and then."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._cpu_s: dict[int, float] = {}
        """Of each process, when it was seen last."""
        self._looks = self._locked = 0
        self.most_threads = self.most_descriptors = 0
        """At once, of all processes."""
        self.addresses: set[str] = set()
        """Of their sockets."""
        self._waited_for_s = 0.0
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
        self._note_descriptors(pids)
        self._looks += 1
        self._locked += not pids.isdisjoint(_locking())

    def end(self, cpu_s: float) -> None:
        """The process has ended, with so many core-seconds of its own and of all that it has waited for."""
        self._waited_for_s = cpu_s

    def _note_descriptors(self, pids: Iterable[int]) -> None:
        count = 0
        networks: dict[str, tuple[int, set[str]]] = {}
        for pid in pids:
            descriptors = _descriptors(pid)
            count += len(descriptors)
            sockets = {name[len(_SOCKET) : -1] for name in descriptors if name.startswith(_SOCKET)}
            if sockets:
                _, inodes = networks.setdefault(_network(pid), (pid, set()))
                inodes |= sockets
        self.most_descriptors = max(self.most_descriptors, count)
        for pid, inodes in networks.values():
            self.addresses.update(address for inode, address in _addresses(pid) if inode in inodes)

    def _tree(self, pid: int) -> Iterator[int]:
        """A process and those below it."""
        yield pid
        for child in self._reader.children(pid, every_thread=True):
            yield from self._tree(child)

    @property
    def cpu_s(self) -> float:
        """Core-seconds of all processes that were seen, or, where that is more, of those that were waited for."""
        return max(sum(self._cpu_s.values()), self._waited_for_s)

    @property
    def locked(self) -> float:
        """Share of the looks at which one of them held a lock on a file for itself."""
        return self._locked / self._looks if self._looks else 0.0


def _descriptors(pid: int) -> list[str]:
    """What a process has open; nothing once it is gone."""
    names = []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                names.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return names


def _network(pid: int) -> str:
    """The network that a process is in (namespaces(7))."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _addresses(pid: int) -> Iterator[tuple[str, str]]:
    """(inode, address) of the sockets in a process' network: ports, and names of local ones (proc(5))."""
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for fields in _rows(f"/proc/{pid}/net/{kind}"):
            port = int(fields[1].rpartition(":")[2], 16)
            if port:
                yield fields[9], f"{kind.rstrip('6')} port {port}"
    for fields in _rows(f"/proc/{pid}/net/unix"):
        if len(fields) > 7 and fields[7].startswith("@"):  # one with a path is a file, and looked at as such
            yield fields[6], f"the local address {fields[7]}"


def _rows(path: str) -> Iterator[list[str]]:
    """The fields of each line but the first."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    yield from (line.split() for line in text.splitlines()[1:])


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
