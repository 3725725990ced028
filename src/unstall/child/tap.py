"""The live header of a recording: what the launcher reads while the program runs, and the one word it writes.

Without NumPy, so that the program starts before that is imported.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from unstall.child.layout import HEADER_AT, HEADER_BYTES, MAGIC, TICK_KINDS, tick_at


class Tap:
    """Tick counts to read, the control word to write. ValueError when the file is not a recording (yet)."""

    def __init__(self, path: Path):
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), HEADER_BYTES)
        if self._map[: len(MAGIC)] != MAGIC:
            raise ValueError(f"{path.name} is not a recording")

    @property
    def ticks(self) -> list[int]:
        """Count by kind, in the order of :class:`unstall.records.vocabulary.Tick`."""
        return list(struct.unpack_from(f"<{TICK_KINDS}Q", self._map, tick_at(0)))

    @property
    def pid(self) -> int:
        """The process that records."""
        return int(struct.unpack_from("<I", self._map, HEADER_AT["pid"])[0])

    @property
    def control(self) -> int:
        """What the launcher asks for; 0 when there is nothing, or it is done."""
        return int(struct.unpack_from("<I", self._map, HEADER_AT["control"])[0])

    @control.setter
    def control(self, value: int) -> None:
        struct.pack_into("<I", self._map, HEADER_AT["control"], value)
