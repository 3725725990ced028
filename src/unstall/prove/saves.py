"""How often a run saves each of its files, seen from outside.

A checkpoint that is written once, at the very end, is the same file as one that was written after each epoch, and
worth nothing to a run that is interrupted. The kernel tells of each file that is closed after it was written, or put
in the place of another, in the folder that takes what the sandbox's programs write (inotify(7)); nothing inside can
change what it tells. A file in a folder that was made just before it may be closed before the folder is watched: so
there are bounds to each count.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median, median_low
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from unstall.prove import thresholds
from unstall.records.proof import Difference
from unstall.text.units import times

if TYPE_CHECKING:
    from unstall.prove.timing import Pair

# As in <sys/inotify.h>.
_CLOSE_WRITE, _OPEN, _MOVED_TO, _CREATE, _OVERFLOW = 0x8, 0x20, 0x80, 0x100, 0x4000
_ISDIR, _ONLYDIR = 0x4000_0000, 0x0100_0000
_WATCHED = _CLOSE_WRITE | _OPEN | _MOVED_TO | _CREATE | _ONLYDIR
"""Each opening comes between two closings, which the kernel would tell as one where nobody has read the first yet."""
_EVENT = struct.Struct("iIII")
_ROOM_BYTES = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


class Saved(NamedTuple):
    """How often a file was saved."""

    least: int
    most: int


class Fewer(NamedTuple):
    """A file that the changed program saves less often."""

    difference: Difference
    is_by_time: bool
    """Whether it may be saved every so many seconds, of which the changed program takes fewer."""


class Saves:
    """Counts the saves of all files below the layers that appear in a folder, while a ``with`` block runs."""

    def __init__(self, home: Path):
        self.home = home
        self.counts: Counter[str] = Counter()
        self.found: set[str] = set()
        """Files that were there when their folder was seen first."""
        self.is_complete = True
        """False where the kernel could not tell all."""
        self._folders: dict[int, str] = {}

    def __enter__(self) -> Saves:
        self._handle = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self.is_complete = self._handle >= 0
        if self.is_complete:
            self._ended, self._end = os.pipe()
            self._watch(os.fspath(self.home))
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._handle < 0:
            return
        os.close(self._end)
        self._thread.join()
        self._read()  # what came last
        os.close(self._ended)
        os.close(self._handle)

    def of_files(self, layers: Sequence[tuple[str, Path]]) -> Mapping[str, Saved]:
        """How often each file was saved, by the path that the program knows; nothing where that is not known.

        Args:
            layers: (folder of the machine, what is written above it), as ``Sandbox.layers`` gives them.
        """
        if not self.is_complete:
            return {}
        found = {}
        for place, upper in layers:
            for path in self.found.union(self.counts):
                if path.startswith(f"{upper}{os.sep}"):
                    count = self.counts[path]
                    found[os.path.join(place, os.path.relpath(path, upper))] = Saved(
                        count, count + (path in self.found)
                    )
        return found

    def _follow(self) -> None:
        while self._ended not in select.select([self._handle, self._ended], [], [])[0]:
            self._read()

    def _read(self) -> None:
        while True:
            try:
                events = os.read(self._handle, _ROOM_BYTES)
            except BlockingIOError:
                return
            for watch, mask, name in _parsed(events):
                self._note(watch, mask, name)

    def _note(self, watch: int, mask: int, name: str) -> None:
        if mask & _OVERFLOW:
            self.is_complete = False
        if watch not in self._folders or not name:
            return
        path = os.path.join(self._folders[watch], name)
        if mask & _ISDIR:
            if mask & (_CREATE | _MOVED_TO):
                self._watch(path)
        elif mask & (_CLOSE_WRITE | _MOVED_TO):
            self.counts[path] += 1

    def _watch(self, folder: str) -> None:
        """Watch a folder, and those that were made in it before anybody looked."""
        watch = _libc.inotify_add_watch(self._handle, os.fsencode(folder), _WATCHED)
        if watch < 0:  # it is gone by now, or not this user's to see; else there are more than the kernel watches
            self.is_complete &= not os.access(folder, os.R_OK)
            return
        is_new = watch not in self._folders
        self._folders[watch] = folder
        try:
            inside = list(os.scandir(folder))
        except OSError:
            return
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                self._watch(entry.path)
            elif is_new:
                self.found.add(entry.path)


def fewer(pairs: Sequence[Pair]) -> Fewer | None:
    """The first file that the changed program saves less often in each of its runs than the original usually does.

    Texts are left out: whether one was written anew or appended to is not known, and an honest change keeps a log open.
    """
    runs = [(pair.original, pair.changed) for pair in pairs if pair.original.saves and pair.changed.saves]
    if len(runs) < thresholds.LEAST_PAIRS:
        return None
    for path in sorted(set.intersection(*(set(run.saves) for both in runs for run in both))):
        content = runs[0][0].effects.contents.get(path)
        before = median_low(original.saves[path].least for original, _ in runs)
        saved = [changed.saves[path] for _, changed in runs]
        if content is None or content.text is not None or max(count.most for count in saved) >= before:
            continue
        after = max(1, *(count.least for count in saved))  # as it is there
        by_time = before * median(b.seconds for _, b in runs) / median(a.seconds for a, _ in runs)
        detail = f"saved {times(after)} instead of {times(before)}"
        return Fewer(Difference(kind="counts", place=path, detail=detail), is_by_time=after >= math.floor(by_time))
    return None


def _parsed(events: bytes) -> Iterator[tuple[int, int, str]]:
    """(watch, mask, name) of each event that the kernel tells."""
    at = 0
    while at < len(events):
        watch, mask, _, length = _EVENT.unpack_from(events, at)
        at += _EVENT.size + length
        yield watch, mask, os.fsdecode(events[at - length : at].rstrip(b"\0"))
