"""What every later run inherits from the process that starts it, and a run that may could change there.

A child of the same user writes into its parent's ``/proc`` folder, or calls prlimit(2) and sched_setaffinity(2) on it:
with later wake-ups, fewer cores or less memory, all runs after it are slower, and its own are not.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc/self")
_FILES = ("timerslack_ns", "oom_score_adj", "autogroup", "coredump_filter", "cgroup")
_LIMITS = sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")})


class Inherited(NamedTuple):
    """Of this process: how it is scheduled, what it may use."""

    policy: int
    nice: int
    cores: frozenset[int]
    limits: dict[int, tuple[int, int]]
    """(soft, hard) by resource."""
    files: dict[str, str]
    """The files of ``/proc`` that can be read."""

    @classmethod
    def now(cls) -> Inherited:
        """As it is now."""
        return cls(
            os.sched_getscheduler(0),
            os.getpriority(os.PRIO_PROCESS, 0),
            frozenset(os.sched_getaffinity(0)),
            {number: resource.getrlimit(number) for number in _LIMITS},
            {name: text for name in _FILES if (text := _read(_PROC / name)) is not None},
        )

    def put_back(self) -> None:
        """As far as this process may: the next run is not to suffer from the last one."""
        with suppress(OSError):
            os.sched_setaffinity(0, self.cores)
            os.sched_setscheduler(0, self.policy, os.sched_getparam(0))
            os.setpriority(os.PRIO_PROCESS, 0, self.nice)
        for number, limits in self.limits.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(number, limits)
        for name, text in self.files.items():
            with suppress(OSError):
                (_PROC / name).write_text(text)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
