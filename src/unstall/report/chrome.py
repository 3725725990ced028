"""The recorded spans as a Chrome trace, which https://ui.perfetto.dev and chrome://tracing open.

Format: "Trace Event Format" (Google, 2016), complete events ("ph": "X") with times in microseconds.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, TypeAlias, cast

Span: TypeAlias = tuple[str, str, float, float, int, int]
"""Name, category, start (s, monotonic), duration (s), process id, thread id."""


def write(spans: Iterable[Span], processes: dict[int, str], path: Path) -> None:
    """Write a trace to ``path``, gzipped if it ends in ``.gz``; it appears whole or not at all.

    Args:
        spans: Read once, in any order, never held together in memory.
        processes: A name to show for each process id.
        path: Replaced if it exists.

    Raises:
        OSError: The file cannot be written; what was there before is left as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _open(temporary, compress=path.suffix == ".gz") as file:
            _write_events(file, _events(spans, processes))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _open(path: Path, *, compress: bool) -> IO[str]:
    if compress:
        return cast(IO[str], gzip.open(path, "wt", compresslevel=5, encoding="utf-8"))
    return path.open("w", encoding="utf-8")


def _write_events(file: IO[str], events: Iterator[str]) -> None:
    file.write('{"displayTimeUnit": "ms", "traceEvents": [')
    separator = "\n"
    for event in events:
        file.write(separator + event)
        separator = ",\n"
    file.write("\n]}\n")


def _events(spans: Iterable[Span], processes: dict[int, str]) -> Iterator[str]:
    for order, (pid, name) in enumerate(processes.items()):
        yield _metadata(pid, pid, "process_name", f'{{"name": {_quoted(name)}}}')
        yield _metadata(pid, pid, "process_sort_index", f'{{"sort_index": {order}}}')
        yield _metadata(pid, pid, "thread_name", '{"name": "main thread"}')
    for name, category, start_s, duration_s, pid, tid in spans:
        if math.isfinite(start_s) and math.isfinite(duration_s):
            yield _complete(name, category, start_s, duration_s, pid, tid)


def _metadata(pid: int, tid: int, name: str, args: str) -> str:
    return f'{{"ph": "M", "pid": {pid}, "tid": {tid}, "name": "{name}", "args": {args}}}'


def _complete(name: str, category: str, start_s: float, duration_s: float, pid: int, tid: int) -> str:
    # Both ends are rounded, not the duration: so an inner span never outlasts the one around it.
    start = round(start_s * 1e9)
    end = max(round((start_s + duration_s) * 1e9), start)
    return (
        f'{{"ph": "X", "name": {_quoted(name)}, "cat": {_quoted(category)}, '
        f'"ts": {_microseconds(start)}, "dur": {_microseconds(end - start)}, '
        f'"pid": {pid}, "tid": {tid}}}'
    )


def _microseconds(nanoseconds: int) -> str:
    """Exact, with the digits that a float of a long uptime would lose."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), 1000)
    return f"{sign}{whole}.{rest:03d}"


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    """A JSON string; lone surrogates, which no reader takes, become question marks."""
    return json.dumps(text.encode("utf-8", "replace").decode("utf-8"))
