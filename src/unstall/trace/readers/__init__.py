"""Reading a trace file: which kind it is, told by its content, not by its name."""

from __future__ import annotations

from pathlib import Path

from unstall.trace.readers.kineto import Progress, read_kineto
from unstall.trace.readers.source import SQLITE, first_bytes
from unstall.trace.timeline import Timeline


def read(path: str | Path, progress: Progress | None = None) -> list[Timeline]:
    """The timelines in a file, one a process: an Nsight file may hold several ranks, all others hold one.

    Args:
        path: a torch.profiler or other Chrome trace (JSON; plain, gzip, bzip2 or xz), an Nsight Systems export
            (SQLite), or an Nsight Systems report (.nsys-rep).
        progress: told the share of the file that has been read, 0..1.

    Raises:
        TraceError: if there is nothing in it that can be read; the message is one line for the user.
    """
    path = Path(path)
    start = first_bytes(path)
    if start == SQLITE or path.suffix in (".nsys-rep", ".qdrep"):
        from unstall.trace.readers.nsight import read_nsight

        return read_nsight(path, progress)
    return [read_kineto(path, progress)]
