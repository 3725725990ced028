"""Which of the user's lines allocate memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class AllocatingLine(msgspec.Struct, frozen=True):
    """A user's line, and the bytes that it or what it called allocated."""

    function: str
    file: str
    line: int
    bytes: int


class MemoryLines(msgspec.Struct, frozen=True):
    """The largest allocating lines at the peak, and of what kept growing; the most bytes first."""

    peak: Sequence[AllocatingLine]
    growth: Sequence[AllocatingLine]
