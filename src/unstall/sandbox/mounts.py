"""What is mounted where, and what to lay over it so that nothing that a program writes reaches it.

The plan is a list of steps that ``enter.py`` carries out in a new mount namespace, on a tree that becomes the
program's root:

- ``overlay``: the tree at this path, with a layer above that takes what is written.
- ``bind``: as it is. For what is read-only anyway, and for devices and the kernel's own file systems.
- ``readonly``: as it is, but writes fail: where no overlay can be laid over.
- ``memory``: a new empty file system in memory, to stand for a folder whose own content is laid out entry by entry.
- ``link``: a symbolic link in such a folder.
- ``shm``: shared memory of the sandbox's own, over what is in shared memory already.

The layout rules are the kernel's: see Documentation/filesystems/overlayfs.rst and mount_namespaces(7), in particular
that mounts inherited by a less privileged namespace are locked together, so that a tree with mounts below it cannot
be an overlay's lower layer there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# fmt: off
KERNEL = frozenset(
    {
        "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs", "devpts", "devtmpfs",
        "efivarfs", "fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.portal", "fusectl", "hugetlbfs", "mqueue", "nfsd",
        "nsfs", "proc", "pstore", "resctrl", "rpc_pipefs", "securityfs", "selinuxfs", "smackfs", "sysfs", "tracefs",
    }
)
# fmt: on
"""File systems that hold no files of anybody's."""

SHARED_MEMORY = "/dev/shm"
_MOST_ENTRIES = 2000  # of a folder that has to be laid out entry by entry


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo."""

    path: str
    kind: str
    """The type of file system."""
    options: frozenset[str]
    """Of the mount and of its file system together."""

    @property
    def readonly(self) -> bool:
        return "ro" in self.options


@dataclass(frozen=True)
class Step:
    """One thing to do at one path of the program's tree."""

    action: str
    path: str
    detail: str = ""
    """Of a link its target, of a memory folder its mode in octal, of an overlay its mount options to keep."""


def read_mounts(source: Path = Path("/proc/self/mountinfo")) -> list[Mount]:
    """What is mounted, shortest path first; of several mounts at one path the last, which is the one seen."""
    try:
        text = source.read_text(errors="surrogateescape")
    except OSError:
        return []
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        mount = parse(line)
        if mount is not None:
            found[mount.path] = mount
    return sorted(found.values(), key=lambda mount: (mount.path != "/", mount.path.count("/"), mount.path))


def parse(line: str) -> Mount | None:
    """A line of /proc/self/mountinfo (proc_pid_mountinfo(5)); None when it is not one."""
    before, separator, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if not separator or len(left) < 6 or len(right) < 3:
        return None
    return Mount(_unescape(left[4]), right[0], frozenset(left[5].split(",") + right[2].split(",")))


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that holds a path."""
    holding = [mount for mount in mounts if path == mount.path or _below(path, mount.path)]
    return max(holding, key=lambda mount: len(mount.path), default=None)


def plan(mounts: Sequence[Mount], *, privileged: bool) -> list[Step]:
    """What to lay where. ``privileged``: mounts are not locked together, as root's are not."""
    layout = _Layout(mounts, privileged)
    if privileged:
        layout.cover_tree("/")
    else:
        layout.add("bind", "/")
        layout.cover_tree("/")
    layout.cover_devices()
    return layout.steps


class _Layout:
    def __init__(self, mounts: Sequence[Mount], privileged: bool):
        # Of the devices only shared memory is laid over.
        self.mounts = [mount for mount in mounts if mount.path != "/dev" and not _below(mount.path, "/dev")]
        self.privileged = privileged
        self.steps: list[Step] = []

    def add(self, action: str, path: str, detail: str = "") -> None:
        self.steps.append(Step(action, path, detail))

    def cover(self, mount: Mount) -> None:
        """Lay what is right over a mount and over the mounts below it."""
        if not os.path.isdir(mount.path):
            if os.path.exists(mount.path):  # a single file, as containers mount them
                self.add("bind" if mount.readonly or _is_special(mount.path) else "readonly", mount.path)
        elif mount.kind in KERNEL:
            self.add("bind", mount.path)
        elif mount.readonly:
            self.add("bind", mount.path)
            self._cover_below(mount.path)
        else:
            self.cover_tree(mount.path)

    def cover_tree(self, path: str) -> None:
        """Lay an overlay over a folder that is not a kernel's, or over its parts where it cannot be whole."""
        if path == "/dev":
            return
        if self.privileged or not self._has_below(path):
            self.add("overlay", path, self._options(path))
            self._cover_below(path)
        else:
            self._cover_entries(path)

    def cover_devices(self) -> None:
        if self.privileged:
            self.add("bind", "/dev")
        if os.path.isdir(SHARED_MEMORY):
            self.add("shm", SHARED_MEMORY)

    def _cover_below(self, path: str) -> None:
        """The mounts directly below a folder; they cover those below them."""
        below = [mount for mount in self.mounts if _below(mount.path, path)]
        for mount in below:
            if not any(_below(mount.path, other.path) for other in below):
                self.cover(mount)

    def _cover_entries(self, path: str) -> None:
        """Lay out a folder whose mounts are locked to it, entry by entry."""
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError:
            return  # who cannot list it cannot write to it by chance
        if len(entries) > _MOST_ENTRIES:
            self.add("readonly", path)
            self._cover_below(path)
            return
        writable = os.access(path, os.W_OK)
        if writable:
            self.add("memory", path, f"{stat.S_IMODE(os.stat(path).st_mode):o}")
        mounted = {mount.path: mount for mount in self.mounts}
        for entry in entries:
            if writable and entry.path == "/dev":
                self.add("bind", entry.path)
            elif entry.path in mounted:
                self.cover(mounted[entry.path])
            elif entry.is_symlink():
                if writable:
                    self.add("link", entry.path, os.readlink(entry.path))
            elif entry.is_dir():
                if writable and self._has_below(entry.path):
                    self.add("bind", entry.path)
                self.cover_tree(entry.path)
            elif _is_special(entry.path):
                if writable:
                    self.add("bind", entry.path)
            elif writable or os.access(entry.path, os.W_OK):
                self.add("readonly", entry.path)

    def _has_below(self, path: str) -> bool:
        return any(_below(mount.path, path) for mount in self.mounts) or _below("/dev", path)

    def _options(self, path: str) -> str:
        """What the mount forbids is forbidden above it too."""
        mount = mount_of(path, self.mounts)
        kept = mount.options & {"nosuid", "noexec"} if mount else frozenset()
        return ",".join(sorted(kept))


def _below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _is_special(path: str) -> bool:
    """A socket, a pipe or a device: it holds no content to harm."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _unescape(text: str) -> str:
    """Octal escapes of space, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
