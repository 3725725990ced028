"""Which of the user's lines allocate: a memray recording read back, in the parent process."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

MIN_MOMENTS = 3
"""A line grows memory only if what it left behind was allocated at three moments or more,"""
MIN_SPAN = 0.2
"""over a fifth of the recording at least,"""
MIN_END = 0.75
"""and still in its last quarter: what is loaded once and kept is no growth."""

_Site = tuple[str, str, int]  # function, file, line
_PACKAGE = str(Path(__file__).resolve().parent.parent)
# The recorded interpreter need not be this one, so the standard library is known by its place.
_NOT_USERS = re.compile(r"/(site|dist)-packages/|/lib(64)?/python3\.\d+/|^<|^$|^" + re.escape(_PACKAGE))


class AllocatingLine(msgspec.Struct, frozen=True):
    """A user's line, the bytes that it or what it called allocated, and in how many allocations."""

    function: str
    file: str
    line: int
    bytes: int
    allocations: int


class MemoryLines(msgspec.Struct, frozen=True):
    """The largest allocating lines at the peak, and of what kept growing; the most bytes first."""

    peak_bytes: int
    peak: list[AllocatingLine]
    growth: list[AllocatingLine]
    complete: bool
    """False if the program was killed: the end is then the last that was written."""


def allocating_lines(path: Path, *, top: int = 5) -> MemoryLines:
    """Read what memray recorded of a run, killed runs included.

    Growth is memory never freed by the end and allocated again and again until then; a line's bytes
    count for the deepest frame of the user's own code.

    Args:
        path: the file that the ``memray`` tool of :mod:`unstall.benchmark.tools` wrote.
        top: how many lines to name at most, for the peak and for the growth each.

    Raises:
        RuntimeError: memray is not installed, or the file is no recording or was cut off before
            anything was recorded; one line says which.
    """
    try:
        import memray
    except ImportError:
        raise RuntimeError(
            'reading the memory recording needs memray: pip install "unstall[memory]"'
        ) from None
    memray.set_log_level(logging.CRITICAL)  # a file that was cut off is expected, and told below
    try:
        with memray.FileReader(path) as reader:
            metadata = reader.metadata
            peak = _sum_lines(_peak_allocations(reader))
            growth = _sum_lines(_growing_allocations(reader))
    except OSError as error:
        raise RuntimeError(
            f"the memory recording {path.name} cannot be read, the program was perhaps killed "
            f"before anything was recorded: {error}"
        ) from None
    finally:
        memray.set_log_level(logging.WARNING)
    return MemoryLines(
        peak_bytes=metadata.peak_memory or _total(reader_path=path),
        peak=peak[:top],
        growth=growth[:top],
        complete=metadata.end_time > metadata.start_time,
    )
