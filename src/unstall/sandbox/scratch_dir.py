"""Where the writes of children go: a folder on the disk with the most space that the user may write to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from unstall.sandbox.thresholds import RESERVE_BYTES

PREFIX = "unstall-sandbox-"


def roots(folder: Path) -> list[Path]:
    """Where homes are made."""
    return [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.home() / ".cache", folder.resolve().parent]


def free_bytes(path: Path) -> int:
    """Bytes an ordinary user may still write there; 0 when that cannot be told."""
    try:
        facts = os.statvfs(path)
    except OSError:
        return 0
    return facts.f_bavail * facts.f_frsize


def homes(places: Sequence[Path], *, room: Callable[[Path], int] = free_bytes) -> Iterator[Path]:
    """New folders in some of :func:`roots` to try, the one with most room first.

    Each is made, with one for notes, when it is asked for. ``room``: the bytes that may be written in a folder.
    """
    by_device: dict[int, Path] = {}
    for path in places:
        if os.access(path, os.W_OK) and room(path) > 2 * RESERVE_BYTES:
            # Folders of one device are not compared by their room: it changes while one looks, and a folder beside
            # the program's is the last resort.
            by_device.setdefault(path.stat().st_dev, path)
    # In memory only when nothing else will do: what is there is taken from the program.
    for path in sorted(by_device.values(), key=lambda path: (_in_memory(path), -room(path))):
        home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=path)).resolve()
        (home / "notes").mkdir()
        yield home


def _in_memory(path: Path) -> bool:
    """Whether a path lies on a tmpfs."""
    from unstall.sandbox.mountinfo import mount_of, read_mounts

    mount = mount_of(str(path.resolve()), read_mounts())
    return mount is not None and mount.kind in {"tmpfs", "ramfs"}
