"""What a command is doing, on stderr: a line that rewrites itself, and lines that stay."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.cells import cell_len

from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten

_PERIOD_S = 0.25
_ERASE_BELOW = "\x1b[J"  # from the cursor to the end of the screen
_ROOM_BELOW = "\x1bD\x1b[A"  # scrolls by a row at the bottom of the screen; the column stays
_SAVE, _DOWN, _RESTORE = "\x1b7", "\x1b[B", "\x1b8"


class Progress:
    """Progress of a command; use it as a context manager, so that nothing of it is left on the screen.

    :meth:`update` shows a line that rewrites itself at most four times a second, and only on a terminal. It stands in
    the row below the cursor, at the right edge, and the cursor stays where the program left it. So what the program
    prints meanwhile appears where it would without the line, and the line is moved out of its way by the next update.

    :meth:`log` writes a line that stays, on a terminal or not, for commands that take minutes.

    Nothing is raised where ``stream`` cannot be written to any more.

    Args:
        stream: Where to write; the process's stderr if not given.
        clock: Monotonic seconds.
        after_s: Show the line that rewrites itself only from then on: short work needs none.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic, *, after_s: float = 0.0
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._began = clock()
        self._after_s = after_s
        self._enabled = _is_terminal(self._stream)
        self._last: float | None = None
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.clear()

    def update(self, phase: str, steps: int = 0, rate: float | None = None) -> None:
        """Show what is going on, the steps so far and their rate a second, four times a second."""
        now = self._clock()
        if not self._enabled or now - self._began < self._after_s:
            return
        if self._last is not None and now - self._last < _PERIOD_S:
            return
        self._last = now
        parts = ["unstall", sanitize_line(phase)]
        if steps:
            parts.append(f"{steps:,} {'step' if steps == 1 else 'steps'}")
        if units.known(rate):
            parts.append(units.rate(rate, "steps"))
        self._write(_below(" · ".join(parts), _columns(self._stream)))
        self._shown = True

    def log(self, line: str) -> None:
        """Write a line that stays, with the seconds since the command began."""
        self.clear()
        indent = line[: len(line) - len(line.lstrip(" "))]
        self._write(f"unstall: {self._clock() - self._began:4.0f} s  {indent}{sanitize_line(line)}\n")

    def clear(self) -> None:
        """Erase the line, if one is shown; the next update shows again at once."""
        if self._shown:
            self._write(_ERASE_BELOW)
        self._shown = False
        self._last = None

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone, or stderr was closed
            self._enabled = False


def _below(line: str, columns: int) -> str:
    """What makes a terminal show ``line`` under the cursor, in place of what was there."""
    line = shorten(line, columns - 1)  # a full row would wrap
    at = f"\x1b[{columns - cell_len(line)}G"
    return f"{_ERASE_BELOW}{_ROOM_BELOW}{_SAVE}{_DOWN}{at}{line}{_RESTORE}"


def _is_terminal(stream: TextIO | None) -> bool:
    if stream is None or os.environ.get("TERM") == "dumb":  # no stderr, or one without cursor control
        return False
    try:
        return stream.isatty()
    except ValueError:
        return False


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
