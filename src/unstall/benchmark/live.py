"""Follow a run in progress from outside, this process's own or another's: read its files, look at its processes.

Nothing is written and no signal is sent, so the program and the unstall that records it do not notice.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict, deque
from pathlib import Path

import msgspec
import psutil

from unstall.benchmark import rundir
from unstall.benchmark.gpus import Gpus
from unstall.benchmark.process_readers import ProcessReader
from unstall.benchmark.thresholds import JUST_STARTED_S, LEAST_WATCHED_RATE_S, WATCHED_RATE_S
from unstall.child.recording import steps_of
from unstall.records.observations import LiveView, ResourcePoint, Usage
from unstall.records.vocabulary import PhaseName

_RECORDS_FIRST, _RECORDS_LATER = 20_000, 5_000  # looked at for the phases: the newest
_LEVELS_ABOVE = 3
_RATES_KEPT = 60


class NothingToWatch(LookupError):
    """There is no run in progress by that name; the message says so and what to do."""


def find(name: str | None = None, folder: Path | None = None) -> Path:
    """The directory of the run to watch: the one named, or the newest that is in progress.

    Raises :class:`NothingToWatch`.
    """
    if name is not None:
        try:
            path = rundir.find(name, folder)
        except LookupError as error:
            raise NothingToWatch(str(error.args[0])) from error
        if not path.is_dir() or not _in_progress(path):
            raise NothingToWatch(f"run {path.name} has ended; see it with: unstall report {path.name}")
        return path
    for path in reversed(rundir.list_runs(folder)):
        if _in_progress(path):
            return path
    raise NothingToWatch("no run is in progress here; start one in another terminal with: unstall run train.py")


class RunFollower:
    """Looks at one run whenever :meth:`look` is called, once or twice a second."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._began = directory.stat().st_mtime
        self._step_counts: deque[tuple[float, int]] = deque()
        self._rates: deque[float] = deque(maxlen=_RATES_KEPT)
        self._points: dict[int, ResourcePoint] = {}
        self._counted_until = 0.0
        self._sums: defaultdict[PhaseName, float] = defaultdict(float)
        self._counted = 0
        self._gpus = Gpus()
        self._reader = ProcessReader()

    def look(self) -> LiveView:
        """The run as it is now."""
        ticks = _ticks(self.directory)
        alive = {pid: counts for pid, counts in ticks.items() if psutil.pid_exists(pid)}
        ended = bool(ticks and not alive) or not self.directory.exists() or not _in_progress(self.directory)
        view = LiveView(self.directory.name, running_s=max(0.0, time.time() - self._began), ended=ended)
        if not alive:
            return view
        main = max(alive, key=lambda pid: (steps_of(alive[pid]), -pid))
        steps = steps_of(alive[main])
        rate = self._rate(steps)
        self._count_phases(main)
        view = msgspec.structs.replace(
            view,
            steps=steps,
            rate=rate,
            rates=list(self._rates),
            phases={name: total / self._counted for name, total in self._sums.items() if total > 0},
            phase_steps=self._counted,
        )
        return self._with_processes(view, main, alive)

    def _rate(self, steps: int) -> float | None:
        now = time.monotonic()
        self._step_counts.append((now, steps))
        while len(self._step_counts) > 2 and now - self._step_counts[1][0] >= WATCHED_RATE_S:
            self._step_counts.popleft()
        then, before = self._step_counts[0]
        if now - then < LEAST_WATCHED_RATE_S:
            return None
        rate = (steps - before) / (now - then)
        if self._rates or rate > 0:
            self._rates.append(rate)
        return rate

    def _count_phases(self, pid: int) -> None:
        """Add the steps that have ended since the last look."""
        from unstall.benchmark.reader import read_latest
        from unstall.benchmark.steps import find_loop

        try:
            records = read_latest(self.directory, pid, _RECORDS_LATER if self._counted else _RECORDS_FIRST)
            loop = find_loop(records)
        except (OSError, ValueError):
            return  # gone, or too busy: next time
        if loop is None:
            return
        new = loop.starts >= self._counted_until
        new[[0, -1]] = False  # those may have begun before, or end after, what was read
        if new.any():
            for name, total in zip(loop.phase_names, loop.phases[new].sum(axis=0)):
                self._sums[name] += float(total)
            self._counted += int(new.sum())
            self._counted_until = float(loop.ends[new].max())

    def _with_processes(self, view: LiveView, main: int, alive: dict[int, list[int]]) -> LiveView:
        """The view with what its processes are and take; as it is if the program ends meanwhile."""
        try:
            process = psutil.Process(main)
            command = " ".join(process.cmdline()[1:])
            began = process.create_time()
            above = process.parents()[:_LEVELS_ABOVE]  # torchrun perhaps, and the unstall that records it
        except psutil.Error:
            return view
        return msgspec.structs.replace(
            view,
            command=command,
            running_s=max(0.0, time.time() - began),
            usage=self._usage(main, alive),
            gpus=list(self._gpus.utilization()),
            sampling="sampling stacks" if any(self._samples(parent.pid) for parent in above) else "watching",
        )

    def _usage(self, main: int, alive: dict[int, list[int]]) -> dict[str, Usage]:
        """What the main process and those below it use since the last look, by the kind of process."""
        now = time.monotonic()
        tree = [main]
        for parent in tree:
            tree += self._reader.children(parent, every_thread=True)
        points = {pid: point for pid in tree if (point := self._reader.look(pid, now))}
        usage: dict[str, Usage] = {}
        for pid, point in points.items():
            before = self._points.get(pid, point)
            cores = (point.cpu_s - before.cpu_s) / (point.t - before.t) if point.t > before.t else 0.0
            total = usage.get(kind := _kind(pid, main, alive), Usage())
            usage[kind] = Usage(total.processes + 1, total.cores + cores, total.rss_bytes + point.rss_bytes)
        self._points = points
        return usage

    def _samples(self, pid: int) -> bool:
        """Whether a process has py-spy at work."""
        for child in self._reader.children(pid, every_thread=True):
            with contextlib.suppress(psutil.Error):
                if psutil.Process(child).name().startswith("py-spy"):
                    return True
        return False


def _kind(pid: int, main: int, alive: dict[int, list[int]]) -> str:
    if pid == main:
        return "main process"
    # A process with a recording and no steps makes batches.
    return "loader workers" if pid in alive and steps_of(alive[pid]) == 0 else "its other processes"


def _ticks(directory: Path) -> dict[int, list[int]]:
    """Counts by process, of all whose recording can be read."""
    from unstall.benchmark.reader import read_header

    ticks = {}
    for path in directory.glob("rec-*.bin"):
        with contextlib.suppress(OSError, ValueError):
            header = read_header(path)
            ticks[int(header["pid"])] = [int(count) for count in header["ticks"]]
    return ticks


def _in_progress(directory: Path) -> bool:
    if (directory / "report.json").exists():
        return False
    recordings = list(directory.glob("rec-*.bin"))
    if not recordings:  # it may be importing its libraries, or have been killed before it began
        return time.time() - directory.stat().st_mtime < JUST_STARTED_S
    return any(psutil.pid_exists(int(path.stem.split("-")[1])) for path in recordings)


def be_gentle() -> None:
    """Leave the cores to the program that is watched."""
    with contextlib.suppress(OSError):
        os.nice(10)
