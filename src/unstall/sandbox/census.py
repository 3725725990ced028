"""Which processes are in a sandbox, whatever they have done since they were started there.

A process that was started in a sandbox is known by any of:

- a namespace that its entrance made, which the keeper holds open: as long as it does, no other namespace gets the same
  number; of user namespaces one that was made in it, too;
- the sandbox's home among its mounts: every mount namespace that is made from the sandbox's has the notes in it, and
  the overlays whose layers are there;
- the sandbox's home in its environment.

A daemon is found like any other process: neither its session nor its parent is asked. Standard library only.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

Namespace = tuple  # device and inode of a namespace's file

_KINDS = ("mnt", "net", "ipc")
_GET_PARENT = 0xB702  # NS_GET_PARENT, ioctl_ns(2)


def inside(home: str, namespaces: Container[Namespace]) -> set[int]:
    """The processes that are in a sandbox: that of a home, or one in which the namespaces were made."""
    members = set()
    for pid in pids():
        try:
            if _is_inside(pid, home, namespaces):
                members.add(pid)
        except OSError:
            pass  # it has ended, or is another user's
    return members


def pids() -> list[int]:
    """All processes but this one."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    except OSError:
        return []


def namespaces_of(pid: int) -> Iterator[Namespace]:
    """The namespaces that a process is in, and the user namespaces around its own. OSError when it is not ours."""
    for kind in _KINDS:
        yield identify(f"/proc/{pid}/ns/{kind}")
    own = identify("/proc/self/ns/user")
    handle = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    try:
        while (namespace := identify(handle)) != own:
            yield namespace
            around = _parent(handle)
            if around is None:
                return
            os.close(handle)
            handle = around
    finally:
        os.close(handle)


def identify(file: str | int) -> Namespace:
    """What a namespace is known by."""
    facts = os.stat(file)
    return facts.st_dev, facts.st_ino


def _is_inside(pid: int, home: str, namespaces: Container[Namespace]) -> bool:
    if any(namespace in namespaces for namespace in namespaces_of(pid)):
        return True
    if identify(f"/proc/{pid}/ns/mnt") != identify("/proc/self/ns/mnt"):
        with open(f"/proc/{pid}/mountinfo", "rb") as file:
            if os.fsencode(f"/{os.path.basename(home)}/") in file.read():
                return True
    with open(f"/proc/{pid}/environ", "rb") as file:
        return b"UNSTALL_SANDBOX=" + os.fsencode(home) in file.read().split(b"\0")


def _parent(handle: int) -> int | None:
    """The user namespace around one; None for that of the machine, and for one that is not ours to see."""
    import fcntl

    try:
        return fcntl.ioctl(handle, _GET_PARENT)
    except OSError:
        return None
