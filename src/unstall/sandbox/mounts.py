"""What to lay over the mounts of this machine, so that nothing that a program writes reaches them.

The plan is a list of steps that ``enter.py`` carries out in a new mount namespace, on a tree that becomes the
program's root:

- ``overlay``: the tree at this path, with a layer above that takes what is written.
- ``readonly``: as it is with all that is mounted in it, but writes fail. An ordinary user's whole tree begins so:
  what no other step is about cannot be written to.
- ``bind``: as it is. For the kernel's own file systems.
- ``memory``: a new empty file system in memory, to stand for a folder whose own content is laid out entry by entry.
- ``link``: a symbolic link in such a folder.
- ``shm``: shared memory of the sandbox's own, over what is in shared memory already.

The layout rules are the kernel's: see Documentation/filesystems/overlayfs.rst and mount_namespaces(7), in particular
that mounts inherited by a less privileged namespace are locked together, so that a tree with mounts below it cannot
be an overlay's lower layer there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from unstall.sandbox.mountinfo import KERNEL, Mount, below, directly_below, inside, mount_of
from unstall.sandbox.thresholds import MOST_ENTRIES


@dataclass(frozen=True)
class Step:
    """One thing to do at one path of the program's tree."""

    action: str
    path: str
    detail: str = ""
    """A link's target, a memory folder's mode in octal, or an overlay's mount options to keep."""


@dataclass(frozen=True)
class MountPlan:
    """What to lay where."""

    steps: list[Step] = field(default_factory=list)
    readonly: dict[str, list[str]] = field(default_factory=dict)
    """Folders that the user may write to, or below, and the program may not; with those below that it may."""


def plan(mounts: Sequence[Mount], *, privileged: bool, reach: Sequence[str] = ()) -> MountPlan:
    """What to lay where.

    Args:
        mounts: what is mounted.
        privileged: mounts are not locked together, as root's are not.
        reach: folders that programs write to, by their real paths.
    """
    layout = _Layout(mounts, privileged, reach)
    if not privileged:
        layout.add("readonly", "/")
    layout.cover_tree("/")
    layout.cover_devices()
    return layout.plan


class _Layout:
    def __init__(
        self,
        mounts: Sequence[Mount],
        privileged: bool,
        reach: Sequence[str] = (),
        *,
        devices: str = "/dev",
        most_entries: int = MOST_ENTRIES,
    ):
        self.device_folder, self.most_entries = devices, most_entries
        self.mounts = [mount for mount in mounts if not inside(mount.path, devices)]
        self.devices = [mount for mount in mounts if inside(mount.path, devices)]
        self.mounted = {mount.path: mount for mount in self.mounts}
        self.privileged = privileged
        self.reach = reach
        self.plan = MountPlan()

    def add(self, action: str, path: str, detail: str = "") -> None:
        self.plan.steps.append(Step(action, path, detail))

    def cover(self, mount: Mount) -> None:
        """Lay what is right over a mount and over the mounts below it."""
        if mount.kind in KERNEL:
            self._show(mount, self.mounts)
        elif not os.path.isdir(mount.path):
            if os.path.exists(mount.path):  # a single file, as containers mount them
                self.add("readonly", mount.path)
        elif mount.readonly:
            self.add("readonly", mount.path)
            self._cover_below(mount.path)
        elif mount.kind == "autofs":  # to list it may mount all that it knows
            self.add("readonly", mount.path)
            self._cover_known(mount.path)
        else:
            self.cover_tree(mount.path)

    def cover_tree(self, path: str) -> None:
        """Lay an overlay over a folder that is not a kernel's, or over its parts where it cannot be whole."""
        if path == self.device_folder:
            return
        if self.privileged or not self._has_below(path):
            self.add("overlay", path, self._options(path))
            self._cover_below(path)
        else:
            self._cover_entries(path)

    def cover_devices(self) -> None:
        """Devices work as they are, under an overlay and through a read-only mount alike; what a program makes, removes
        or changes beside them stays inside. Shared memory is the sandbox's own.
        """
        itself = next((mount for mount in self.devices if mount.path == self.device_folder), Mount(self.device_folder))
        if self.privileged and not itself.readonly:  # an ordinary user's overlay would open no device
            self.add("overlay", self.device_folder, _forbidden(itself))
        else:
            self.add("readonly", self.device_folder)
        for mount in directly_below(self.device_folder, self.devices):
            self._show(mount, self.devices)
        shared_memory = f"{self.device_folder}/shm"
        if os.path.isdir(shared_memory):
            self.add("shm", shared_memory)

    def _show(self, mount: Mount, mounts: Sequence[Mount], above: str = "") -> None:
        """What is the kernel's as it is, with what is mounted in it; all else there is read-only: a device can be
        written to nevertheless.
        """
        action = "bind" if mount.kind in KERNEL else "readonly"
        if action != above and os.path.exists(mount.path):
            self.add(action, mount.path)
        for under in directly_below(mount.path, mounts):
            self._show(under, mounts, action)

    def _cover_below(self, path: str) -> None:
        """The mounts directly below a folder; they cover those below them."""
        for mount in directly_below(path, self.mounts):
            self.cover(mount)

    def _cover_entries(self, path: str) -> None:
        """Lay out a folder whose mounts are locked to it, entry by entry."""
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError:
            entries = []
        if not 0 < len(entries) <= self.most_entries:
            self._cover_known(path)
            return
        writable = os.access(path, os.W_OK)
        if writable:
            self.add("memory", path, f"{stat.S_IMODE(os.stat(path).st_mode):o}")
        for entry in entries:
            self._cover_entry(entry, writable)

    def _cover_entry(self, entry: os.DirEntry[str], anew: bool) -> None:
        """Lay out an entry of a folder; ``anew``: the folder is a new one, in which the entry is not yet."""
        if entry.path in self.mounted:
            self.cover(self.mounted[entry.path])
        elif entry.is_symlink():
            if anew:
                self.add("link", entry.path, os.readlink(entry.path))
        elif entry.is_dir():
            if anew and self._has_below(entry.path):
                self.add("readonly", entry.path)
            self.cover_tree(entry.path)
        elif anew:
            self.add("readonly", entry.path)

    def _cover_known(self, path: str) -> None:
        """What is known below a folder that stays read-only: what is mounted there, and where programs write to."""
        mounted = directly_below(path, self.mounts)
        folders = [
            folder
            for folder in self.reach
            if below(folder, path) and not any(inside(folder, mount.path) for mount in mounted)
        ]
        folders = [folder for folder in folders if not any(below(folder, other) for other in folders)]
        for folder in folders:
            self.cover_tree(folder)
        for mount in mounted:
            if not any(below(mount.path, folder) for folder in folders):
                self.cover(mount)
        if os.access(path, os.X_OK):  # else the user cannot write below it either
            self.plan.readonly[path] = folders

    def _has_below(self, path: str) -> bool:
        return any(below(mount.path, path) for mount in self.mounts) or below(self.device_folder, path)

    def _options(self, path: str) -> str:
        """What the mount forbids is forbidden above it too."""
        mount = mount_of(path, self.mounts)
        return _forbidden(mount) if mount else ""


def _forbidden(mount: Mount) -> str:
    return ",".join(sorted(mount.options & {"nosuid", "noexec"}))
