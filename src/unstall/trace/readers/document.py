"""The outer shape of a trace in JSON: an object with ``traceEvents`` and other entries in any order, or a bare list.

No line layout is relied on. The events go to a scanner as they come, so that the file is never in memory whole; the
other entries are small and become Python values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from unstall.trace.readers.rows import TRUNCATED, EventScanner
from unstall.trace.timeline import TraceError

EVENTS = "traceEvents"
MAX_ENTRY = 256 << 20
"""Bytes of a single entry beside the events, beyond which the file is taken to be no trace."""
BEYOND = "trace with text behind its end, which was left out"
BROKEN_ENTRY = "entries beside the events that are not valid JSON"
INCOMPLETE, BAD = -1, -2
_WINDOW = 4096
_DECODER = json.JSONDecoder(parse_int=lambda text: int(text) if len(text) < 40 else float(text), strict=False)
_BROKEN: Any = object()
_WORDS = ("null", "true", "false", "NaN", "Infinity", "-Infinity")
_MAX_DIGITS = 5000
_ESCAPE_SO_FAR = re.compile(r"\\?u[0-9a-fA-F]{0,4}")
_NUMBER_SO_FAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.|(?:\.[0-9]+)?[eE][+-]?)")
_NUMBER_TAIL = re.compile(r"[-+.0-9eE]*\Z")
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
        if self._peek() == b"\xef":
            self._skip_mark()
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
                if byte not in (b" ", b"\t", b"\r", b"\n"):
                    return byte
                self._at += 1
            if not self._more():
                return b""

    def _skip_mark(self) -> None:
        """The byte order mark that some editors write."""
        while len(self._data) - self._at < 3 and self._more():
            pass
        if self._data.startswith(b"\xef\xbb\xbf", self._at):
            self._at += 3

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
            whole = self._at + window >= len(self._data)
            end = _value_end(text, whole and self._ended)
            if end >= 0:
                piece = text[:end].encode("utf-8", "surrogateescape")
                self._at += len(piece)
                return _DECODER.decode(piece.decode("utf-8", "replace"))
            if end == BAD or window > MAX_ENTRY:
                return _BROKEN
            if whole and self._ended:
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


def _value_end(text: str, final: bool) -> int:
    """Where the JSON value that the text begins with ends, INCOMPLETE or BAD; final: no text will follow."""
    try:
        end = _DECODER.raw_decode(text)[1]
    except RecursionError:
        return BAD
    except json.JSONDecodeError as error:
        return INCOMPLETE if is_unfinished(error) else BAD
    may_go_on = (text[0] not in '{["' and end == len(text)) or is_number_so_far(text)
    return INCOMPLETE if may_go_on and not final else end


def is_unfinished(error: json.JSONDecodeError) -> bool:
    """Whether what is wrong with a text is only that it ends."""
    at, rest = error.pos, error.doc[error.pos : error.pos + len("-Infinity")]
    if error.msg.startswith("Unterminated string") or not rest:
        return True
    if error.msg.startswith("Invalid \\u"):
        return bool(_ESCAPE_SO_FAR.fullmatch(rest))
    if error.msg == "Expecting value":
        return any(word.startswith(rest) for word in _WORDS)
    if error.msg == "Expecting ',' delimiter" and rest[0] in ".eE":
        return is_number_so_far(_NUMBER_TAIL.search(error.doc, max(0, at - _MAX_DIGITS))[0])  # type: ignore[index]
    return False


def is_number_so_far(text: str) -> bool:
    """Whether a text is a number that ends where a digit must follow: after its point, or in its exponent."""
    return bool(_NUMBER_SO_FAR.fullmatch(text))
