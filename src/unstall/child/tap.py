"""The live header of a recording: what the launcher reads while the program runs, and the one word it writes.

Without NumPy, so that the program starts before that is imported. See ``native/recorder.h`` for the layout.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

_HEADER_BYTES = 4096
_PID_AT, _CONTROL_AT, _TICKS_AT = 24, 48, 56
_MAGIC = b"UNSTALL1"


class Tap:
    """Tick counts to read, the control word to write. ValueError when the file is not a recording (yet)."""

    def __init__(self, path: Path):
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _HEADER_BYTES)
        if self._map[: len(_MAGIC)] != _MAGIC:
            raise ValueError(f"{path.name} is not a recording")

    @property
    def ticks(self) -> list[int]:
        """Count by tick kind, see :mod:`unstall.child.recording`."""
        return list(struct.unpack_from("<8Q", self._map, _TICKS_AT))

    @property
    def pid(self) -> int:
        """The process that records."""
        return int(struct.unpack_from("<I", self._map, _PID_AT)[0])

    @property
    def control(self) -> int:
        """A wish of the launcher's, 0 when there is none or it is fulfilled."""
        return int(struct.unpack_from("<I", self._map, _CONTROL_AT)[0])

    @control.setter
    def control(self, value: int) -> None:
        struct.pack_into("<I", self._map, _CONTROL_AT, value)
