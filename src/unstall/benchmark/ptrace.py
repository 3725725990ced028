"""What keeps a sampler outside the program from reading the program's memory.

Many Linux distributions (Yama, ``ptrace_scope`` 1) let only a process's ancestors read it, and
py-spy is a sibling of the program it watches. The bootstrap in the program gives py-spy leave to.
"""

from __future__ import annotations

import os

_CAP_SYS_PTRACE = 1 << 19
_RESTRICTIONS = {
    1: "processes may trace only their own children here",
    2: "only root may trace here",
    3: "the system forbids all tracing",
}


def obstacle(pid: int, *, proc: str = "/proc") -> str | None:
    """Why a sibling may not read the process ``pid``; None if nothing is known to be in the way.

    Looks at the owner of the process and at the system's ``ptrace_scope``, not at the leave that
    the process may have given. ``proc``: where the kernel tells of processes.
    """
    if _has_ptrace_capability(proc):
        return None
    try:
        owner = os.stat(f"{proc}/{pid}").st_uid
    except OSError:
        return None
    if owner != os.geteuid():
        return f"process {pid} belongs to another user"
    scope = _ptrace_scope(proc)
    return f"{_RESTRICTIONS[scope]} (kernel.yama.ptrace_scope={scope})" if scope in _RESTRICTIONS else None


def _ptrace_scope(proc: str) -> int:
    try:
        with open(f"{proc}/sys/kernel/yama/ptrace_scope") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _has_ptrace_capability(proc: str) -> bool:
    try:
        with open(f"{proc}/self/status") as status:
            effective = next(line.split()[1] for line in status if line.startswith("CapEff:"))
        return bool(int(effective, 16) & _CAP_SYS_PTRACE)
    except (OSError, StopIteration, ValueError):
        return False
