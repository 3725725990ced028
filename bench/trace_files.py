"""Large traces for bench/trace.py: a real one repeated, with its times and ids moved on, in its own layout."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

_MOVED = re.compile(rb'("(?:ts|correlation|External id|external id|id|Sequence number)": ?)(\d+)')


def read_text(path: Path) -> bytes:
    """The trace's text, unpacked."""
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def repeated(text: bytes, copies: int) -> Iterator[bytes]:
    """The text of a trace with its events ``copies`` times, each copy behind the one before in time.

    The events must be the last list of their name, as Kineto writes them: ``"traceEvents": [ {...}, ... ]``.
    """
    begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
    end = text.rindex(b"]", 0, _end_of_events(text))
    pieces = _MOVED.split(text[begin:end])
    constant, numbers = pieces[0::3], [int(number) for number in pieces[2::3]]
    keys = pieces[1::3]
    times = [number for key, number in zip(keys, numbers) if key.startswith(b'"ts"')]
    ids = [number for key, number in zip(keys, numbers) if not key.startswith(b'"ts"')]
    by_time, by_id = max(times) - min(times) + 1_000_000, max(ids) + 1
    steps = [by_time if key.startswith(b'"ts"') else by_id for key in keys]
    fixed = [before + key for before, key in zip(constant, keys)]
    yield text[:begin]
    for copy in range(copies):
        if copy:
            yield b","
        moved = (b"%d" % (number + copy * step) for number, step in zip(numbers, steps))
        yield b"".join(part for pair in zip(fixed, moved) for part in pair) + constant[-1]
    yield text[end:]


def _end_of_events(text: bytes) -> int:
    """Behind the list's closing bracket: Kineto writes names and numbers after it, but no further events."""
    last = text.rindex(b'"ph"')
    return text.index(b"]", text.index(b"}", last)) + 1


def write(path: Path, text: bytes, copies: int) -> tuple[int, int]:
    """Write the repeated trace gzipped; returns bytes of JSON and events."""
    from isal import igzip

    size = events = 0
    with igzip.open(path, "wb", compresslevel=1) as file:
        for part in repeated(text, copies):
            file.write(part)
            size += len(part)
            events += part.count(b'"ph"')
    return size, events
