"""The program's own loader with other numbers of workers: what it gives by itself, and what it takes."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from typing import Any

from unstall.child import loader_settings


def worker_counts(cores: float) -> list[int]:
    """0, 1, 2, 4 and so on, up to two more than there are cores."""
    most = int(cores) + 2
    counts = [0, *(1 << power for power in range(16) if 1 << power < most), most]
    return sorted(set(counts))


def rate(loader: Any, workers: int, *, seconds: float, item_count: Any) -> dict[str, Any]:
    """Items a second of a loader with so many workers, and the cores that it keeps busy meanwhile.

    The batches that were made while nobody took one are left out. A loader that cannot be run so says why: ``error``.
    """
    began = time.perf_counter()
    try:
        batches = endless(loader_settings.with_workers(loader, workers))
        next(batches)
        start_s = time.perf_counter() - began
        for _ in range(workers * (loader.prefetch_factor or 2) if workers else 0):
            next(batches)
            if time.perf_counter() - began > start_s + seconds:
                break
        items, cpu, clock = 0, cpu_s(), time.perf_counter()
        while not items or time.perf_counter() - clock < seconds:
            items += item_count(next(batches))
        took = time.perf_counter() - clock
        cores = (cpu_s() - cpu) / took
        del batches
    except StopIteration:
        return {"workers": workers, "error": "the loader gave no batch"}
    except Exception as error:
        return {"workers": workers, "error": why(error)}
    return {"workers": workers, "items_per_s": items / took, "cores": cores, "start_s": start_s}


def endless(loader: Any) -> Iterator[Any]:
    """Its batches, epoch after epoch; StopIteration as soon as an epoch gives none."""
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            return


def cpu_s() -> float:
    """Core-seconds of this process and of its children, living or waited for, as far as the system tells."""
    ticks = os.sysconf("SC_CLK_TCK")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + children.ru_utime + children.ru_stime
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                fields = stat.read().rpartition(b") ")[2].split()
            if int(fields[1]) == os.getpid():
                total += (int(fields[11]) + int(fields[12])) / ticks
        except (OSError, IndexError, ValueError):
            continue  # it has ended
    return total


def why(error: BaseException) -> str:
    """One line for a person: what keeps a loader from running."""
    text = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    pickles = "pickle" in text.lower() or "pickle" in type(error).__name__.lower()
    if pickles:
        return f"its dataset cannot be sent to a spawned worker ({text}): define it, and all it holds, at module level"
    if "bootstrapping phase" in str(error):
        return "spawned workers import the program: put what it does under `if __name__ == '__main__':`"
    return f"{type(error).__name__}: {text}"[:300]
