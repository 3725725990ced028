"""What a run ran on: interpreter, cores it may use, memory, GPUs, revision of the code."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from unstall.benchmark.gpus import Gpus


def environment(gpus: Gpus | None = None) -> dict[str, Any]:
    """Facts about this machine and the code's revision; what is not known is absent."""
    gpus = gpus or Gpus()
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cpu_count": usable_cores(),
        "memory_bytes": usable_memory_bytes(),
        "gpus": [{"name": gpu.name, "memory_bytes": gpu.memory_bytes} for gpu in gpus.devices],
        "driver": gpus.driver,
        "git_revision": git_revision(Path.cwd()),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    for line in _lines(Path("/proc/cpuinfo")):
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def usable_cores(root: Path = Path("/")) -> float:
    """Cores this process may use: its affinity, and the quota of each control group it is in.

    ``root`` is where ``proc`` and ``sys`` lie.
    """
    return min(float(len(os.sched_getaffinity(0))), cpu_quota(root))


def cpu_quota(root: Path = Path("/")) -> float:
    """Cores that the control groups of this process allow it; infinite without a quota."""
    quotas = (_quota_v2(folder) or _quota_v1(folder) for folder in _control_groups(root, "cpu"))
    return min(filter(None, quotas), default=math.inf)


def usable_memory_bytes(root: Path = Path("/")) -> int:
    """Memory this process may use: the machine's, or its control group's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for folder in _control_groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _first_word(folder / name)
            if limit.isdigit():
                total = min(total, int(limit))
    return total


def git_revision(folder: Path) -> str | None:
    """The commit checked out in ``folder``; None without git or outside a repository."""
    try:
        git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=2.0)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return git.stdout.strip() or None if git.returncode == 0 else None


def _control_groups(root: Path, controller: str) -> list[Path]:
    """Folders of the control groups that bind this process for one controller, innermost first."""
    folders = []
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0":
            mount = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            mount = root / "sys/fs/cgroup" / controller
        else:
            continue
        # In a container the path may be the host's, and not be there; the mount itself is.
        group = mount / path.lstrip("/")
        while group != mount:
            folders.append(group)
            group = group.parent
        folders.append(mount)
    return folders


def _quota_v2(folder: Path) -> float | None:
    words = " ".join(_lines(folder / "cpu.max")).split()
    if len(words) == 2 and words[0].isdigit():
        return int(words[0]) / int(words[1])
    return None


def _quota_v1(folder: Path) -> float | None:
    quota, period = (_first_word(folder / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    if quota.isdigit() and period.isdigit():  # a quota of -1 is none
        return int(quota) / int(period)
    return None


def _first_word(path: Path) -> str:
    return next((line.split()[0] for line in _lines(path) if line.split()), "")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
