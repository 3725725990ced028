"""What keeps a sampler outside the program from reading the program's memory.

Many Linux distributions (Yama, ``ptrace_scope`` 1) let only a process's ancestors read it, and
py-spy is a sibling of the program it watches. The bootstrap in the program gives py-spy leave to.
"""

from __future__ import annotations

import os

_CAP_SYS_PTRACE = 1 << 19
_SCOPE_FILE = "/proc/sys/kernel/yama/ptrace_scope"
_RESTRICTIONS = {
    1: "processes may trace only their own children here",
    2: "only root may trace here",
    3: "the system forbids all tracing",
}


def obstacle(pid: int) -> str | None:
    """Why a sibling may not read the process ``pid``; None if nothing is known to be in the way.

    Looks at the owner of the process and at the system's ``ptrace_scope``, not at the leave that
    the process may have given.
    """
    if _has_ptrace_capability():
        return None
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
    if owner != os.geteuid():
        return f"process {pid} belongs to another user"
    scope = _ptrace_scope()
    return f"{_RESTRICTIONS[scope]} (kernel.yama.ptrace_scope={scope})" if scope in _RESTRICTIONS else None


def _ptrace_scope() -> int:
    try:
        with open(_SCOPE_FILE) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _has_ptrace_capability() -> bool:
    try:
        with open("/proc/self/status") as status:
            effective = next(line.split()[1] for line in status if line.startswith("CapEff:"))
        return bool(int(effective, 16) & _CAP_SYS_PTRACE)
    except (OSError, StopIteration, ValueError):
        return False
