"""Leave to read a process's memory, which a sampler outside the process needs.

Many Linux distributions (Yama, ``ptrace_scope`` 1) let only a process's ancestors read it. py-spy
is a sibling of the program it watches, so the program has to allow it. :func:`allow_tracer` runs in
the watched program: standard library only, and it never raises.
"""

from __future__ import annotations

import os

_PR_SET_PTRACER = 0x59616D61
_CAP_SYS_PTRACE = 1 << 19
_SCOPE_FILE = "/proc/sys/kernel/yama/ptrace_scope"


def allow_tracer(pid: int) -> bool:
    """Let the process ``pid`` and its descendants read the calling process; says if it took effect.

    A forked child does not inherit the leave and has to call this again. False where no such leave
    is needed, or none can be given.
    """
    if _ptrace_scope() != 1:
        return False
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
        return prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0) == 0
    except (ImportError, OSError, AttributeError, TypeError):
        return False


def obstacle(pid: int) -> str | None:
    """Why a sibling may not read the process ``pid``; None if nothing is known to be in the way.

    Looks at the owner of the process and at the system's ``ptrace_scope``, not at the leave that a
    process gave by :func:`allow_tracer`.
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
    if scope >= 3:
        return "the system forbids all tracing (kernel.yama.ptrace_scope=3)"
    if scope == 2:
        return "only root may trace here (kernel.yama.ptrace_scope=2)"
    if scope == 1:
        return "processes may trace only their own children here (kernel.yama.ptrace_scope=1)"
    return None


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
