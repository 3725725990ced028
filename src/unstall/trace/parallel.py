"""Many files, one a rank: read in processes of their own, from which only their figures come back."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psutil

from unstall.benchmark.environment import usable_cores
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.ranks import Summary, summary_of
from unstall.trace.readers import read
from unstall.trace.readers.kineto import Progress
from unstall.trace.timeline import TraceError

PACKED_FACTOR, PLAIN_FACTOR = 8.0, 0.5
"""Memory that reading takes, as a multiple of the file's size: measured 3.6 for gzip and 0.27 for plain JSON
(bench/trace.py), with room for the analysis."""


def summaries_of(
    paths: Sequence[Path], progress: Progress | None = None, *, cores: float | None = None
) -> tuple[list[Summary], list[str]]:
    """The figures of each rank in the files, in their order; and a line for each file that cannot be read.

    As many files are read at a time as there are cores and memory allows.

    Args:
        paths: the files.
        progress: told the share of the files that is done, 0..1.
        cores: those to use, if not all that there are.
    """
    with ProcessPoolExecutor(jobs_for(paths, cores), multiprocessing.get_context("spawn")) as pool:
        try:
            futures = _submit(pool, paths)
            for done, _ in enumerate(as_completed(futures), 1):
                if progress:
                    progress(done / len(futures))
        except BaseException:  # Ctrl-C: nobody waits for them any more
            for reader in multiprocessing.active_children():
                reader.kill()
            raise
    return _results(paths, futures)


def _submit(pool: ProcessPoolExecutor, paths: Sequence[Path]) -> list[Future[list[Summary]]]:
    """Start reading. Ctrl-C is this process's, which ends the readers: they inherit that they do not get it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(_summaries, path) for path in paths]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _results(paths: Sequence[Path], futures: Sequence[Future[list[Summary]]]) -> tuple[list[Summary], list[str]]:
    summaries: list[Summary] = []
    errors: list[str] = []
    for path, future in zip(paths, futures):
        try:
            summaries += future.result()
        except TraceError as error:
            errors.append(str(error))
        except BrokenProcessPool:
            errors.append(f"{path}: the process that read it was killed, perhaps for lack of memory")
    return summaries, errors


def _summaries(path: Path) -> list[Summary]:
    return [summary_of(TimelineMetrics(timeline), part) for part, timeline in enumerate(read(path))]


def jobs_for(paths: Sequence[Path], cores: float | None = None) -> int:
    """As many as there are cores to use, and as fit in half of the free memory with the largest files."""
    free = psutil.virtual_memory().available / 2
    needs = sorted((_memory(path) for path in paths), reverse=True)
    fitting = sum(sum(needs[: n + 1]) <= free for n in range(len(needs)))
    return max(1, min(int(usable_cores() if cores is None else cores), fitting))


def _memory(path: Path) -> float:
    try:
        with path.open("rb") as file:
            packed = file.read(1) not in (b"{", b"[", b" ", b"\n")
        return path.stat().st_size * (PACKED_FACTOR if packed else PLAIN_FACTOR)
    except OSError:
        return 0.0
