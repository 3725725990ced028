"""How often a run saves each of its files, seen from outside.

A checkpoint that is written once, at the very end, is the same file as one that was written after each epoch, and
worth nothing to a run that is interrupted. The kernel tells of each file that is closed after it was written, or put
in the place of another, in the folder that takes what the sandbox's programs write (inotify(7)); nothing inside can
change what it tells. A file in a folder that was made just before it may be closed before the folder is watched: so
there are bounds to each count.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import NamedTuple

# As in <sys/inotify.h>.
_MODIFY, _CLOSE_WRITE, _CLOSE_NOWRITE, _OPEN, _MOVED_FROM, _MOVED_TO, _CREATE, _OVERFLOW = (
    0x2, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x4000,
)  # fmt: skip
_ISDIR, _ONLYDIR = 0x4000_0000, 0x0100_0000
_WATCHED = _MODIFY | _CLOSE_WRITE | _CLOSE_NOWRITE | _OPEN | _MOVED_FROM | _MOVED_TO | _CREATE | _ONLYDIR
"""Each opening comes between two closings, which the kernel would tell as one where nobody has read the first yet."""
_EVENT = struct.Struct("iIII")
_ROOM_BYTES = 1 << 16
_LAG_S = 0.002  # from what is done to a file to when it is told
_libc = ctypes.CDLL(None, use_errno=True)


class _Event(NamedTuple):
    """What the kernel tells at once."""

    watch: int
    mask: int
    name: str


class Saved(NamedTuple):
    """How often a file was saved."""

    least: int
    most: int
    moments: tuple[float, ...] = ()
    """When the saves were seen, on the clock of ``time.monotonic``."""
    sizes: tuple[int, ...] = ()
    """Bytes at each save, as far as they were seen."""
    is_used: bool = False
    """Whether the program itself has read it, or put it in another place."""
    grown_to: int = 0
    """Bytes, the most that were seen, of one that was written and not yet closed too."""


class Saves:
    """Counts the saves of all files below the layers that appear in a folder, while a ``with`` block runs."""

    def __init__(self, home: Path):
        self.home = home
        self.moments: defaultdict[str, list[float]] = defaultdict(list)
        self.sizes: defaultdict[str, list[int]] = defaultdict(list)
        self.grown_to: defaultdict[str, int] = defaultdict(int)
        """The most bytes that were seen of each file that was written."""
        self._modified: set[str] = set()
        """Files that were written since they were saved last."""
        self._used: set[str] = set()
        """Files that were opened to be read alone, or moved."""
        self._events: deque[_Event] = deque()
        """What the kernel has told and was not yet looked at."""
        self.preexisting: set[str] = set()
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
        saved = {}
        for place, upper in layers:
            for path in self.preexisting.union(self.moments):
                if path.startswith(f"{upper}{os.sep}"):
                    moments = tuple(self.moments.get(path, ()))
                    saved[os.path.join(place, os.path.relpath(path, upper))] = Saved(
                        len(moments), len(moments) + (path in self.preexisting), moments, tuple(self.sizes[path]),
                        path in self._used, self.grown_to.get(path, 0),
                    )  # fmt: skip
        return saved

    def _follow(self) -> None:
        while self._ended not in select.select([self._handle, self._ended], [], [])[0]:
            self._read()

    def _read(self) -> None:
        self._fetch()
        while self._events:
            self._note(*self._events.popleft())

    def _fetch(self) -> None:
        """Take what the kernel has to tell by now."""
        with suppress(BlockingIOError):
            while True:
                self._events.extend(_parsed(os.read(self._handle, _ROOM_BYTES)))

    def _note(self, watch: int, mask: int, name: str) -> None:
        if mask & _OVERFLOW:
            self.is_complete = False
        if watch not in self._folders or not name:
            return
        path = os.path.join(self._folders[watch], name)
        if mask & _ISDIR:
            if mask & (_CREATE | _MOVED_TO):
                self._watch(path)
        elif mask & _MODIFY:
            self._modified.add(path)
            with suppress(OSError):  # it is gone
                size = os.stat(path, follow_symlinks=False).st_size
                self.grown_to[path] = max(self.grown_to[path], size)
        elif mask & (_CLOSE_NOWRITE | _MOVED_FROM):
            self._used.add(path)
        elif mask & _MOVED_TO or (mask & _CLOSE_WRITE and path in self._modified):
            self._modified.discard(path)
            if not self._is_empty(path, watch, name):
                self.moments[path].append(monotonic())
                with suppress(OSError):  # it is gone
                    self.sizes[path].append(os.stat(path, follow_symlinks=False).st_size)

    def _is_empty(self, path: str, watch: int, name: str) -> bool:
        """Whether a file holds nothing worth keeping; not known of one that is written again by now."""
        try:
            if os.stat(path, follow_symlinks=False).st_size:
                return False
        except OSError:  # it is gone
            return False
        sleep(_LAG_S)
        self._fetch()
        return not any((event.watch, event.name) == (watch, name) for event in self._events)

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
                self.preexisting.add(entry.path)


def _parsed(events: bytes) -> Iterator[_Event]:
    """Each event that the kernel tells."""
    at = 0
    while at < len(events):
        watch, mask, _, length = _EVENT.unpack_from(events, at)
        at += _EVENT.size + length
        yield _Event(watch, mask, os.fsdecode(events[at - length : at].rstrip(b"\0")))
