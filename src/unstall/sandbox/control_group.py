"""A control group of an experiment's own (cgroups(7), version 2), where this user may make one: nothing leaves it.

That is so for root, and for a user's own services and desktop sessions under systemd. A group without controllers
changes nothing for the processes in it. Standard library only: it runs in any interpreter.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING or __package__:
    from unstall.sandbox import mountinfo
else:
    import mountinfo


def move(pid: int, name: str) -> str:
    """Move a process into a new group below this process's own; the group's folder, or nothing where that cannot be.

    The kernel takes some 10 ms for it, so it is not the process itself that waits for that.
    """
    try:
        own = _own()
        if own is None or str(pid) not in _read(own, "cgroup.procs").split():
            return ""
        if _read(own, "cgroup.subtree_control").strip():  # the group would have a share of its own
            return ""
        group = os.path.join(own, name)
        os.mkdir(group)
    except OSError:
        return ""
    try:
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write(str(pid))
    except OSError:
        remove(group)
        return ""
    return group


def members(group: str) -> set[int]:
    """The processes in a group, and in those that were made in it."""
    pids = set()
    for folder, _, _ in os.walk(group):
        try:
            pids |= {int(line) for line in _read(folder, "cgroup.procs").split()}
        except OSError:
            pass  # gone by now
    return pids - {0}


def remove(group: str) -> None:
    """Remove a group that is empty."""
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # somebody is left in it, or it is gone


def _own() -> str | None:
    """The folder of the group that this process is in."""
    with open("/proc/self/cgroup") as file:
        path = next((line[3:].rstrip("\n") for line in file if line.startswith("0::")), None)
    mount = next((mount for mount in mountinfo.read_all() if mount.kind == "cgroup2" and not mount.readonly), None)
    if path is None or mount is None or ".." in path:
        return None
    return mount.path + path.rstrip("/")


def _read(folder: str, name: str) -> str:
    with open(os.path.join(folder, name)) as file:
        return file.read()
