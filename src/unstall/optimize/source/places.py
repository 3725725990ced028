"""Where the running program was, in terms of its source."""

from __future__ import annotations

from pathlib import Path

import msgspec


class CallSite(msgspec.Struct, frozen=True):
    """A call in the user's source, as the running program saw it."""

    file: Path
    line: int
    function: str
    span: tuple[int, int, int, int] | None = None
    """(first line, last line, first column, end column), lines from 1, columns from 0 in bytes, as Python has them;
    None where the interpreter does not know the columns."""
