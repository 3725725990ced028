"""Look at a program that runs already: its stacks, its processes and their threads. Nothing is put into it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from unstall.benchmark import ptrace
from unstall.benchmark.cut_stacks import with_whole_stacks
from unstall.benchmark.resources import ResourceMonitor
from unstall.benchmark.sampler import Sampler
from unstall.benchmark.thresholds import MOST_BUSY_THREADS, POLL_S, SHORTEST_LOOK_S
from unstall.child import launchers
from unstall.records.observations import Observation


class CannotAttach(Exception):
    """The process cannot be looked at; the message is one line."""


@dataclass(frozen=True)
class AttachedObservation:
    """What was seen of a program."""

    pid: int
    command: Sequence[str]
    observation: Observation
    threads: Mapping[int, Sequence[tuple[str, float]]]
    """(name, cores) of the busiest threads, by process."""
    ranks: Mapping[int, tuple[int, int]]
    """(rank, world size) by process, as its launcher's variables say."""
    main_thread: Mapping[int, float] = field(default_factory=dict)
    """Cores that the main thread took, by process: what stands still takes none."""


def look(pid: int, directory: Path, duration_s: float, on_poll: Callable[[float], None]) -> AttachedObservation:
    """Look at a process and its descendants until the shares are known, or for so long.

    Args:
        pid: the program, or the launcher of its ranks.
        directory: where py-spy's file lies for a moment.
        duration_s: the longest that this takes, seconds.
        on_poll: called about ten times a second with the seconds so far.

    Raises:
        CannotAttach: there is no such process, or it may not be read.
    """
    command = read_command(pid)
    monitor, sampler = ResourceMonitor(pid), Sampler(pid, directory, pause_s=0.3)
    began = now = time.monotonic()
    threads_before = {child: _thread_cpu(child) for child in process_tree(pid)}
    try:
        while now - began < duration_s and sampler.failure is None and psutil.pid_exists(pid):
            sampler.poll(now)
            if sampler.process_pid is not None:
                monitor.ignore.add(sampler.process_pid)
            monitor.poll(now)
            if sampler.done and now - began >= min(SHORTEST_LOOK_S, duration_s):
                break
            on_poll(now - began)
            time.sleep(POLL_S)
            now = time.monotonic()
    finally:
        sampler.close()
    if not sampler.samples:
        raise CannotAttach(sampler.failure or f"process {pid} showed no Python stack in {duration_s:.0f} s")
    pids = {sample.pid for sample in sampler.samples}
    ended = time.monotonic()
    threads = {process: _cores(threads_before.get(process, {}), process, ended - began) for process in pids}
    return AttachedObservation(
        pid=pid,
        command=command,
        observation=with_whole_stacks(
            Observation(began, ended, monitor.points, monitor.machine, sampler.samples, sampler.lost)
        ),
        threads={process: _busiest(process, cores) for process, cores in threads.items()},
        main_thread={process: cores[process] for process, cores in threads.items() if process in cores},
        ranks={process: rank for process in pids if (rank := _rank(process)) is not None},
    )


def read_command(pid: int) -> list[str]:
    """Its command line. Raises CannotAttach where it may not be read from outside."""
    try:
        command = psutil.Process(pid).cmdline()
    except psutil.NoSuchProcess as error:
        raise CannotAttach(f"there is no process {pid}") from error
    except psutil.AccessDenied as error:
        raise CannotAttach(f"process {pid} belongs to another user") from error
    obstacle = ptrace.obstacle(pid)
    if obstacle is not None:
        raise CannotAttach(f"process {pid} may not be read: {obstacle}; run this as root, or with CAP_SYS_PTRACE")
    return command


def process_tree(pid: int) -> list[int]:
    """It and its descendants; none where it has ended."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        return []


def _thread_cpu(pid: int) -> dict[int, float]:
    """Core-seconds of each thread so far."""
    try:
        return {thread.id: thread.user_time + thread.system_time for thread in psutil.Process(pid).threads()}
    except psutil.Error:
        return {}


def _cores(before: Mapping[int, float], pid: int, seconds: float) -> dict[int, float]:
    """Cores that each thread took."""
    return {thread: (cpu_s - before.get(thread, cpu_s)) / seconds for thread, cpu_s in _thread_cpu(pid).items()}


def _busiest(pid: int, cores: Mapping[int, float]) -> list[tuple[str, float]]:
    most = sorted(cores, key=lambda thread: -cores[thread])[:MOST_BUSY_THREADS]
    return [(_thread_name(pid, thread), cores[thread]) for thread in most if cores[thread] > 0]


def _thread_name(pid: int, thread: int) -> str:
    try:
        name = Path(f"/proc/{pid}/task/{thread}/comm").read_text(errors="replace").strip()
    except OSError:
        name = "?"
    return f"{name} (main)" if thread == pid else name


def variables(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty where it may not be read."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(os.fsdecode(word).partition("=")[::2] for word in words if b"=" in word)


def _rank(pid: int) -> tuple[int, int] | None:
    """Rank and world size of a process of several, by the variables that it was started with."""
    identity = launchers.identity(variables(pid))
    rank, world_size = identity.get("rank"), identity.get("world_size")
    return (int(rank), int(world_size)) if rank is not None and world_size is not None and int(world_size) > 1 else None
