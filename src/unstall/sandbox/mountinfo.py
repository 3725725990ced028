"""What is mounted where, as the kernel tells it. Standard library only: it runs in any interpreter."""

from __future__ import annotations

import collections
import re

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# fmt: off
KERNEL = frozenset(
    {
        "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs", "devpts", "efivarfs",
        "fuse.lxcfs", "fusectl", "mqueue", "nfsd", "nsfs", "proc", "pstore", "resctrl", "rpc_pipefs",
        "securityfs", "selinuxfs", "smackfs", "sysfs", "tracefs",
    }
)
# fmt: on
"""File systems that hold no files of anybody's."""

_NO_OPTIONS: frozenset[str] = frozenset()


class Mount(
    collections.namedtuple("Mount", "path kind options number device", defaults=("", _NO_OPTIONS, "", "")),
):
    """One line of mountinfo: its path, the type of file system, and the options of the mount and of its file system
    together; ``number`` identifies the mount, and ``device`` the file system.
    """

    __slots__ = ()
    path: str
    kind: str
    options: frozenset[str]
    number: str
    device: str

    @property
    def readonly(self) -> bool:
        return "ro" in self.options


def read_all(source: str = "/proc/self/mountinfo") -> list[Mount]:
    """Every mount, in the order of the kernel; OSError when it does not tell."""
    with open(source, errors="surrogateescape") as file:
        return [mount for line in file.read().splitlines() if (mount := parse(line))]


def read_mounts(source: str = "/proc/self/mountinfo") -> list[Mount]:
    """What is mounted, shortest path first; of several mounts at one path the last, which is the one seen."""
    try:
        by_path = {mount.path: mount for mount in read_all(source)}
    except OSError:
        return []
    return sorted(by_path.values(), key=lambda mount: (mount.path != "/", mount.path.count("/"), mount.path))


def parse(line: str) -> Mount | None:
    """A line of /proc/self/mountinfo (proc_pid_mountinfo(5)); None when it is not one."""
    before, separator, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if not separator or len(left) < 6 or len(right) < 3:
        return None
    options = [_unescape(option) for option in (*left[5].split(","), *right[2].split(","))]
    return Mount(_unescape(left[4]), right[0], frozenset(options), left[0], left[2])


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that holds a path."""
    holding = [mount for mount in mounts if inside(path, mount.path)]
    return max(holding, key=lambda mount: len(mount.path), default=None)


def directly_below(path: str, mounts: Sequence[Mount]) -> list[Mount]:
    """The mounts below a folder that are not below another of them."""
    inner = [mount for mount in mounts if below(mount.path, path)]
    return [mount for mount in inner if not any(below(mount.path, other.path) for other in inner)]


def below(path: str, folder: str) -> bool:
    """Whether a path is in a folder, at any depth."""
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it."""
    return path == folder or below(path, folder)


def _unescape(text: str) -> str:
    """Octal escapes of space, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
