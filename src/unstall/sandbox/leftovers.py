"""What a run of ours that was killed has left: folders whose owner is gone are cleaned up, or named, at the next start.

A folder is claimed by a lock on a file in it, which the kernel releases however its owner ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from unstall.sandbox import census, control_group

_CLAIM = ".claimed"
_ENDING = (signal.SIGINT, signal.SIGTERM)


def claim(folder: Path) -> BinaryIO | None:
    """Claim a folder for as long as the file is open, here or in a process that has inherited it; None if it is taken.

    OSError where the folder cannot be written to.
    """
    path = folder / _CLAIM
    if not path.exists():
        return _first_claim(path)
    file = open(path, "r+b")  # noqa: SIM115  open for as long as the claim holds
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _first_claim(path: Path) -> BinaryIO:
    """Lock the file before anybody can see it: another start takes one that is not locked for abandoned."""
    unseen = path.with_name(f"{path.name}-{os.getpid()}")
    file = open(unseen, "xb")  # noqa: SIM115  as above
    fcntl.flock(file, fcntl.LOCK_EX)
    unseen.rename(path)
    return file


@contextlib.contextmanager
def claimed(make: Callable[[], Path]) -> Iterator[Path]:
    """Make a folder and claim it, and remove it at the end. Ctrl-C and SIGTERM wait while either is done."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    folder = file = None
    try:
        folder = make()
        file = claim(folder)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield folder
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if file is not None:
            file.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def abandoned(roots: Iterable[Path], prefix: str) -> Iterator[tuple[Path, BinaryIO]]:
    """This user's folders of a prefix that nobody claims any more, each with a claim of the caller's own."""
    for root in dict.fromkeys(roots):
        for folder in sorted(root.glob(f"{prefix}*")):
            with contextlib.suppress(OSError):
                if (folder / _CLAIM).is_file() and folder.stat().st_uid == os.geteuid():
                    file = claim(folder)
                    if file is not None:
                        with file:
                            yield folder, file


def remove_abandoned(roots: Iterable[Path], prefix: str) -> None:
    """Remove this user's folders of a prefix that nobody claims any more."""
    for folder, _ in abandoned(roots, prefix):
        shutil.rmtree(folder, ignore_errors=True)


def settle_sandboxes(roots: Iterable[Path], prefix: str, remove: Callable[[Path], object]) -> list[str]:
    """Remove the sandboxes whose owners were killed; a line for each that cannot be: what is left, and what to do.

    What still runs is not ended: nobody knows by now what it is good for.
    """
    lines = []
    empty = []
    for home, _ in abandoned(roots, prefix):
        running = sorted(processes(home))
        if running:
            pids = " ".join(map(str, running))
            remaining = f"{_count(running)} running ({named(running)})"
            lines.append(f"an experiment that was cut off has left {remaining}, in {home}: to end, kill -9 {pids}")
        elif (home / "vault").is_dir() and any((home / "vault").iterdir()):
            lines.append(f"files that an experiment changed, and that were not put back, are in {home / 'vault'}")
        else:
            empty.append(home)
    for home in empty:  # with no claim of this process's any more
        with contextlib.suppress(OSError):  # another start was faster
            remove(home)
    return lines


def processes(home: Path) -> set[int]:
    """The processes that are left in a sandbox whose keeper is gone."""
    pids = census.inside(str(home), ())
    for file in home.glob("layer-*/group"):
        with contextlib.suppress(OSError):  # gone by now
            pids |= control_group.members(file.read_text())
    return pids


def named(running: Iterable[int]) -> str:
    """The names of processes, for a line that tells of them; each once."""
    names = set()
    for pid in running:
        with contextlib.suppress(OSError):  # gone by now
            names.add(Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n"))
    return ", ".join(sorted(names)) or "gone by now"


def _count(running: list[int]) -> str:
    return "a process" if len(running) == 1 else f"{len(running)} processes"
