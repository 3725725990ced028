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

MAX_ENTRIES = 256 << 20
"""Bytes of the entries before or behind the events, beyond which no more are read."""
BEYOND = "trace with text behind its end, which was left out"
BROKEN_ENTRY = "entries next to the events that are not valid JSON"
INCOMPLETE, BAD = -1, -2
_SPACE = b" \t\r\n\xef\xbb\xbf"
"""The last three are the byte order mark that some editors write."""
_KEY = re.compile(r'[ \t\r\n,]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_PARTIAL = re.compile(r"[-+.\\\w]{0,9}\Z")
"""The beginning of a number, a literal, or the rest of an escape: what may end a text that is cut off."""
_EVENTS_BEGIN = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')


def read_document(chunks: Iterator[bytes], scanner: EventScanner) -> tuple[dict[str, Any], dict[str, int]]:
    """Hand the events to a scanner; returns the entries beside them, and what could not be read and how often.

    Raises:
        TraceError: it is no JSON trace at all; the message is without the file's name.
    """
    before, events = _until_events(chunks)
    if events is None:
        return _last_entries(before[1:])
    behind = _scan(events, chunks, scanner)
    if before == b"[":
        return {}, {}
    metadata, left, _ = _entries(before[1:])
    problems = {BROKEN_ENTRY: 1} if left else {}
    if behind is not None:  # else the scanner knows that the events are cut off
        more, more_problems = _last_entries(_all(behind, chunks))
        metadata |= more
        problems |= more_problems
    return metadata, problems


def _until_events(chunks: Iterator[bytes]) -> tuple[bytes, bytes | None]:
    """What is before the array of events, and what has been read of it; None if there is none."""
    data = b""
    for chunk in chunks:
        data = (data + chunk).lstrip(_SPACE)
        if data.startswith(b"["):
            return b"[", data[1:]
        if data and not data.startswith(b"{"):
            raise TraceError("no trace that is known here (neither JSON nor SQLite)")
        if match := _EVENTS_BEGIN.search(data):
            return data[: match.start()], data[match.end() :]
        if len(data) > MAX_ENTRIES:
            break
    if not data:
        raise TraceError("the file is empty")
    return data, None


def _scan(events: bytes, chunks: Iterator[bytes], scanner: EventScanner) -> bytes | None:
    """Read the array; returns what has been read behind it, None if the file ends before."""
    behind = scanner.feed(events)
    while behind is None:
        chunk = next(chunks, b"")
        behind = scanner.feed(chunk, final=not chunk)
        if not chunk:
            break
    return behind


def _all(data: bytes, chunks: Iterator[bytes]) -> bytes:
    for chunk in chunks:
        data += chunk
        if len(data) > MAX_ENTRIES:
            break
    return data


def _last_entries(data: bytes) -> tuple[dict[str, Any], dict[str, int]]:
    """The entries up to the end of the file, and what is wrong with them."""
    entries, left, is_cut = _entries(data)
    if left.startswith("}"):
        return entries, {BEYOND: 1} if left != "}" else {}
    return entries, {TRUNCATED if is_cut or "}" not in left else BROKEN_ENTRY: 1}


def _entries(data: bytes) -> tuple[dict[str, Any], str, bool]:
    """Entries ``"key": value, ...``, what follows those that can be read, and whether it may only be cut off."""
    text = data.decode("utf-8", "replace")
    entries: dict[str, Any] = {}
    at, end = 0, 0
    while key := _KEY.match(text, at):
        name, end = next_value(text, key.start(1))
        if end < 0:
            break
        value, end = next_value(text, key.end())
        if end < 0:
            break
        entries[name], at = value, end
    return entries, text[at:].strip(", \t\r\n"), end == INCOMPLETE


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
