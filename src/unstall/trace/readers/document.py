"""The outer shape of a trace in JSON: an object with ``traceEvents`` and other entries in any order, or a bare list.

No line layout is relied on. The events go to a scanner as they come, so that the file is never in memory whole; the
other entries are small and become Python values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from unstall.trace.readers.rows import DECODER, TRUNCATED, EventScanner
from unstall.trace.timeline import TraceError

EVENTS = "traceEvents"
MAX_ENTRY = 256 << 20
"""Bytes of a single entry beside the events, beyond which the file is taken to be no trace."""
BEYOND = "trace with text behind its end, which was left out"
BROKEN_ENTRY = "entries beside the events that are not valid JSON"
INCOMPLETE, BAD = -1, -2
_WINDOW = 4096
_SPACE = b" \t\r\n\xef\xbb\xbf"
"""The last three are the byte order mark that some editors write."""
_BROKEN: Any = object()
_PARTIAL = re.compile(r"[-+.\\\w]{0,9}\Z")
"""The beginning of a number, a literal, or the rest of an escape: what may end a text that is cut off."""
_EVENTS_BEGIN = re.compile(rb'"traceEvents"\s*:\s*\[')


class Document:
    """Reads a trace in JSON from chunks of bytes.

    After read(): ``metadata``, the entries beside the events; ``problems``, what could not be read and how often.
    """

    def __init__(self, chunks: Iterator[bytes], scanner: EventScanner) -> None:
        self.metadata: dict[str, Any] = {}
        self.problems: dict[str, int] = {}
        self._chunks = chunks
        self._scanner = scanner
        self._data = b""
        self._at = 0
        self._ended = False
        self._cut = False

    def read(self) -> None:
        """Read it all; TraceError, without the file's name, if it is no JSON trace at all."""
        first = self._peek()
        if first == b"[":
            self._at += 1
            self._events()
        elif first == b"{":
            self._at += 1
            self._object()
        else:
            raise TraceError("no trace that is known here (neither JSON nor SQLite)" if first else "the file is empty")

    def _problem(self, what: str) -> None:
        self.problems[what] = self.problems.get(what, 0) + 1

    # ---- bytes

    def _more(self) -> bool:
        """Append the next chunk; False if there is none."""
        chunk = next(self._chunks, b"")
        self._data = self._data[self._at :] + chunk
        self._at = 0
        self._ended = not chunk
        return bool(chunk)

    def _peek(self) -> bytes:
        """The next byte that is no space, without taking it; b"" at the end of the file."""
        while True:
            while self._at < len(self._data):
                byte = self._data[self._at : self._at + 1]
                if byte not in _SPACE:
                    return byte
                self._at += 1
            if not self._more():
                return b""

    # ---- entries

    def _object(self) -> None:
        while True:
            following = self._peek()
            if following == b",":
                self._at += 1
                continue
            if following in (b"}", b""):
                self._end(following)
                return
            key = self._value()
            if isinstance(key, str) and self._peek() == b":":
                self._at += 1
                if key == EVENTS and self._peek() == b"[":
                    self._at += 1
                    self._events()
                    continue
                value = self._value()
                if value is not _BROKEN:
                    self.metadata[key] = value
                    continue
            if not self._recover():
                return

    def _end(self, following: bytes) -> None:
        if not following:
            self._problem(TRUNCATED)
            return
        self._at += 1
        if self._peek():
            self._problem(BEYOND)

    def _value(self) -> Any:
        """The JSON value that comes next, or _BROKEN; then ``_cut`` tells whether the file ended inside it."""
        self._peek()
        self._cut = False
        window = _WINDOW
        while True:
            piece = self._data[self._at : self._at + window]
            text = piece.decode("utf-8", "surrogateescape")
            _, end = next_value(text)
            if end >= 0:
                piece = text[:end].encode("utf-8", "surrogateescape")
                self._at += len(piece)
                return DECODER.decode(piece.decode("utf-8", "replace"))
            if end == BAD or window > MAX_ENTRY:
                return _BROKEN
            if self._ended and self._at + window >= len(self._data):
                self._cut = True
                return _BROKEN
            window *= 8
            while len(self._data) - self._at < window and self._more():
                pass

    def _recover(self) -> bool:
        """After a broken entry go on at the events, if they are still to come."""
        self._problem(TRUNCATED if self._cut or not self._peek() else BROKEN_ENTRY)
        while True:
            if found := _EVENTS_BEGIN.search(self._data, self._at):
                self._at = found.start()
                return True
            self._at = max(self._at, len(self._data) - 64)
            if not self._more():
                return False

    def _events(self) -> None:
        """Hand the array to the scanner; what is behind it stays."""
        rest = self._scanner.feed(self._data[self._at :])
        while rest is None:
            chunk = next(self._chunks, b"")
            rest = self._scanner.feed(chunk, final=not chunk)
            if not chunk:
                break
        self._data = rest or b""
        self._at = 0


def next_value(text: str, at: int = 0, decoder: json.JSONDecoder = DECODER) -> tuple[Any, int]:
    """The JSON value at this place and where it ends; INCOMPLETE if it may go on behind the text, BAD if it is none."""
    try:
        value, end = decoder.raw_decode(text, at)
    except RecursionError:
        return None, BAD
    except json.JSONDecodeError as error:
        unfinished = error.msg.startswith("Unterminated string") or _PARTIAL.match(text, error.pos)
        return None, INCOMPLETE if unfinished else BAD
    may_go_on = text[at] not in '{["' and _PARTIAL.match(text, end)
    return value, INCOMPLETE if may_go_on else end
