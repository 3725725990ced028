"""A trace file as a stream of plain bytes: what it is told by its content, unpacked, read ahead in a thread."""

from __future__ import annotations

import bz2
import lzma
import queue
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from unstall.trace.timeline import TraceError

CHUNK = 4 << 20
"""Bytes handed on at a time, at most."""
PACKED = 256 << 10
"""Bytes unpacked at a time."""
AHEAD = 3
"""Chunks unpacked before they are asked for."""

UNSUSPECTED = 256 << 20
DENSEST = 200
"""Traces unpack to 10 to 30 times their size. One that is larger than ``UNSUSPECTED`` and packed denser than this was
made to take time and memory, and is read up to there.
"""

SQLITE = b"SQLite format 3\0"
_UNREADABLE = {
    b"\x28\xb5\x2f\xfd": "is packed with zstd: unpack it first (zstd -d)",
    b"PK\x03\x04": "is a zip archive: unpack it first (unzip)",
    b"\x7fELF": "is a program, not a trace",
    b"PAR1": "is a Parquet file, not a trace",
}


def first_bytes(path: Path) -> bytes:
    """The first 16 bytes. TraceError if it is no file, cannot be read, or is empty."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    if not start:
        raise TraceError(f"{path}: the file is empty")
    return start


class Chunks:
    """An iterator over the unpacked bytes of a file, read ahead by a thread of its own.

    After the last chunk, ``broken`` says what was wrong if the data ended before its end ("" if nothing was), and
    ``read`` how many bytes of the file, as it is on disk, have been used so far, for a progress bar.
    """

    def __init__(self, path: Path) -> None:
        start = first_bytes(path)
        for magic, message in _UNREADABLE.items():
            if start.startswith(magic):
                raise TraceError(f"{path}: {message}")
        self.broken = ""
        self.read = 0
        self.size = path.stat().st_size
        self._raw = path.open("rb")
        self._unpacked = _unpacked(start, self._raw)
        self._queue: queue.Queue[bytes] = queue.Queue(AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._fill, name="unstall-trace-reader", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._queue.get():
            yield chunk

    def close(self) -> None:
        """Stop reading; safe to call at any time."""
        self._stop.set()
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._thread.join()
        self._raw.close()

    def _fill(self) -> None:
        unpacked = 0
        try:
            for chunk in self._unpacked:
                if self._stop.is_set():
                    return
                self.read = self._raw.tell()
                unpacked += len(chunk)
                if unpacked > max(UNSUSPECTED, DENSEST * self.read):
                    self.broken = f"packed file that unpacks to more than {DENSEST} times its size, read up to there"
                    break
                if chunk:  # an empty one would be the end
                    self._put(chunk)
        except EOFError:
            self.broken = "packed file cut off in the middle (a killed job?), read up to there"
        except Exception as error:  # each unpacker has its own for data that are not what was packed
            self.broken = f"packed file damaged ({error}), read up to there"
        self._put(b"")

    def _put(self, chunk: bytes) -> None:
        while not self._stop.is_set():
            with suppress(queue.Full):
                self._queue.put(chunk, timeout=0.1)
                return


def _unpacked(start: bytes, raw: IO[bytes]) -> Iterator[bytes]:
    """The bytes that are packed in a file; where it ends too early EOFError, after all that can be unpacked."""
    if start.startswith(b"\x1f\x8b"):
        return _inflated(raw)
    if start.startswith(b"BZh"):
        return _pieces(bz2.open(raw))
    if start.startswith(b"\xfd7zXZ"):
        return _pieces(lzma.open(raw))
    return iter(lambda: raw.read(CHUNK), b"")


def _pieces(file: bz2.BZ2File | lzma.LZMAFile) -> Iterator[bytes]:
    """All that can be unpacked: unlike ``read``, ``read1`` returns what it has before it raises EOFError."""
    return iter(lambda: file.read1(CHUNK), b"")


def _inflated(raw: IO[bytes]) -> Iterator[bytes]:
    """Of gzip, whose members may follow each other. igzip unpacks several times as fast as zlib; its file object would
    lose up to 2 MB before the end of a file that is cut off.
    """
    library: Any = zlib
    with suppress(ImportError):
        from isal import isal_zlib as library
    data = raw.read(PACKED)
    while data:
        member = library.decompressobj(wbits=31)
        while not member.eof:
            yield member.decompress(data, CHUNK)
            data = member.unconsumed_tail or (b"" if member.eof else raw.read(PACKED))
            if not data and not member.eof:
                yield member.flush()
                if not member.eof:
                    raise EOFError
        data = member.unused_data.lstrip(b"\0") or raw.read(PACKED)
