"""A placebo for loader workers: processes that burn the CPU time the workers took, and make nothing.

Run as a program: ``cpu_burner.py RECORDING OFFSET SECONDS BACKLOG`` burns so many CPU-seconds for each batch that the
program takes, at most BACKLOG batches behind, as workers whose queue is full wait. The batches are counted at that
offset in the program's recording. As a program it imports the standard library only.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

_IDLE_S = 0.0005


def main(recording: str, offset: int, seconds: float, backlog: int) -> None:
    """Burn until the parent is gone."""
    with open(recording, "rb") as file:
        page = mmap.mmap(file.fileno(), offset + 8, prot=mmap.PROT_READ)
    parent = os.getppid()
    done = 0
    while os.getppid() == parent:
        batches = struct.unpack_from("<Q", page, offset)[0]
        done = max(done, batches - backlog)
        if done < batches:
            _burn(seconds)
            done += 1
        else:
            time.sleep(_IDLE_S)


def _burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


class CpuBurners:
    """As many burners as there are workers, all paused until wanted. Use it as a context manager."""

    def __init__(self, recording: Path, *, workers: int, seconds_per_batch: float, prefetch: int):
        from unstall.child.layout import tick_at
        from unstall.records.vocabulary import Tick

        counter = str(tick_at(Tick.DATA))
        words = [str(recording), counter, repr(seconds_per_batch / workers), str(workers * prefetch)]
        line = [sys.executable, "-I", "-S", __file__, *words]
        self._processes = [subprocess.Popen(line, stdin=subprocess.DEVNULL) for _ in range(workers)]
        self.pause()

    @property
    def pids(self) -> set[int]:
        return {process.pid for process in self._processes}

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def __enter__(self) -> CpuBurners:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _signal(self, number: int) -> None:
        for process in self._processes:
            process.send_signal(number)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
