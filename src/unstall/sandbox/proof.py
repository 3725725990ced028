"""Proof that what is written inside the sandbox stays there: of what is mounted, and by writing.

``check_mounts`` looks at the mounts themselves, at every entrance and before the program starts. Run as a script
inside the sandbox, ``proof.py NAME FOLDERS EXCEPT`` writes files, that nobody may find outside afterwards.

Standard library only: it runs in any interpreter.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

if TYPE_CHECKING or __package__:
    from unstall.sandbox import mountinfo
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import mountinfo


def check_mounts(machine_devices: Container[str], layer: str, written: Sequence[str]) -> None:
    """OSError, that names the path and its file system, when something that this process sees is written to for real.

    Args:
        machine_devices: the devices that were mounted before the tree was laid out.
        layer: the folder that takes what this process writes.
        written: folders that it writes to for real.
    """
    for mount in mountinfo.read_all():
        if not is_safe(mount, machine_devices, layer, written) and _is_seen(mount):
            raise OSError(f"{mount.path} ({mount.kind}) would be written to for real")


def is_safe(mount: mountinfo.Mount, machine_devices: Container[str], layer: str, written: Iterable[str]) -> bool:
    """Whether what is written through a mount changes nobody's files; the arguments are those of check_mounts."""
    if mount.readonly or mount.kind in mountinfo.KERNEL:
        return True
    if any(mountinfo.inside(mount.path, folder) for folder in written):
        return True
    if mount.device in machine_devices:
        return False
    return mount.kind == "tmpfs" or (mount.kind == "overlay" and _writes_into(layer, mount))


def _writes_into(layer: str, mount: mountinfo.Mount) -> bool:
    """Whether an overlay's changes go to a folder; which kernels tell with or without the escapes they were given."""
    uppers = [option.partition("=")[2] for option in mount.options if option.startswith("upperdir=")]
    return len(uppers) == 1 and mountinfo.below(uppers[0].replace("\\", ""), layer.replace("\\", ""))


def _is_seen(mount: mountinfo.Mount) -> bool:
    """Whether this process can reach a mount: none is mounted over it, and the way to it can be entered."""
    try:
        handle = os.open(mount.path, os.O_PATH)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    except OSError:
        return True
    try:
        with open(f"/proc/self/fdinfo/{handle}") as file:
            return f"mnt_id:\t{mount.number}\n" in file.read()
    finally:
        os.close(handle)


def write_probes(
    name: str, folders: Iterable[str], written: Sequence[str], mounts: Iterable[mountinfo.Mount]
) -> list[str]:
    """Make a file of this name in the folders, and in the mounts that can be written to; where that went well.

    The kernel's own file systems, and what is written to for real, are left out.
    """
    mounted = [
        mount.path
        for mount in mounts
        if not (mount.readonly or mount.kind in mountinfo.KERNEL) and os.path.isdir(mount.path)
    ]
    done = []
    for folder in dict.fromkeys([*folders, *mounted]):
        if any(mountinfo.inside(folder, other) for other in written):
            continue
        try:
            with open(os.path.join(folder, name), "x"):
                done.append(folder)
        except OSError:
            pass  # read-only, or not this user's
    return done


if __name__ == "__main__":
    print(json.dumps(write_probes(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]), mountinfo.read_all())))
