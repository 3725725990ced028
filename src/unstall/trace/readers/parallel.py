"""Many files, one a rank: read and reduced in processes of their own, so that only results come back."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import psutil

from unstall.benchmark.environment import usable_cores
from unstall.trace.readers import read
from unstall.trace.readers.kineto import Progress
from unstall.trace.timeline import Timeline, TraceError

Result = TypeVar("Result")

PACKED_FACTOR, PLAIN_FACTOR = 8.0, 0.5
"""Memory that reading takes, as a multiple of the file's size: measured 3.6 for gzip and 0.27 for plain JSON
(bench/trace.py), with room for the analysis."""


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """What came of a file: a result for each process in it, or the error that says why there is none."""

    path: str
    results: tuple[Result, ...] = ()
    error: str = ""


def read_each(
    paths: Sequence[str | Path],
    function: Callable[[Timeline], Result],
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome[Result]]:
    """Apply a function to the timelines of files; outcomes in the order of the files.

    A single file is read in this process. Of several, as many at a time as there are cores and memory allows.

    Args:
        paths: the files.
        function: what to keep of a timeline: of module level, as it and its results go to other processes and back.
        jobs: processes at most; None for as many as pays.
        progress: told the share of the whole that is done, 0..1.
    """
    jobs = min(len(paths), jobs or jobs_for(paths))
    if jobs > 1:
        return _in_processes(paths, function, jobs, progress)
    outcomes = []
    for number, path in enumerate(paths):
        outcomes.append(_one(str(path), function, _part(progress, number, len(paths))))
    return outcomes


def jobs_for(paths: Sequence[str | Path]) -> int:
    """As many as there are cores to use, and as fit in half of the free memory with the largest files."""
    free = psutil.virtual_memory().available / 2
    needs = sorted((_memory(Path(path)) for path in paths), reverse=True)
    fitting = sum(sum(needs[: n + 1]) <= free for n in range(len(needs)))
    return max(1, min(int(usable_cores()), fitting))


def _memory(path: Path) -> float:
    try:
        with path.open("rb") as file:
            packed = file.read(1) not in (b"{", b"[", b" ", b"\n")
        return path.stat().st_size * (PACKED_FACTOR if packed else PLAIN_FACTOR)
    except OSError:
        return 0.0


def _part(progress: Progress | None, number: int, count: int) -> Progress | None:
    return progress and (lambda share: progress((number + share) / count))


def _one(path: str, function: Callable[[Timeline], Result], progress: Progress | None = None) -> Outcome[Result]:
    try:
        return Outcome(path, tuple(function(timeline) for timeline in read(path, progress)))
    except TraceError as error:
        return Outcome(path, error=str(error))


def _in_processes(
    paths: Sequence[str | Path], function: Callable[[Timeline], Result], jobs: int, progress: Progress | None
) -> list[Outcome[Result]]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = [pool.submit(_one, str(path), function) for path in paths]
        for done, _ in enumerate(as_completed(futures), 1):
            if progress:
                progress(done / len(futures))
        return [_outcome(str(path), future) for path, future in zip(paths, futures)]


def _outcome(path: str, future: Future[Outcome[Result]]) -> Outcome[Result]:
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(path, error=f"{path}: the process that read it was killed, for want of memory perhaps")
