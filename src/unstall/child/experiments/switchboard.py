"""The board by which the parent tells a running program, and its workers, which condition is in force.

A small memory-mapped file in the run directory: a generation number and the condition as JSON. Each process of the
program compares the generation with the one it last applied; that is one read of shared memory.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FILE_NAME = "switchboard"
_BYTES = 1 << 16
# generation, length of the text; written by the main process: generation applied, when (ns); real calls so far
_PATIENCE = 500  # looks, a millisecond apart, at a text that is being written
_HEAD = struct.Struct("<QQQQQ")


class Switchboard:
    """One side's view of the board. ``create``: the parent's, which makes it; ``clock``: monotonic nanoseconds."""

    def __init__(
        self, directory: str | os.PathLike[str], *, create: bool = False, clock: Callable[[], int] = time.monotonic_ns
    ):
        self._clock = clock
        path = os.path.join(directory, FILE_NAME)
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        try:
            if create:
                os.ftruncate(fd, _BYTES)
            self._map = mmap.mmap(fd, _BYTES)
        finally:
            os.close(fd)
        self._words = memoryview(self._map)[: _HEAD.size].cast("Q")

    @property
    def generation(self) -> int:
        """The number of the condition wanted; 0 before the first."""
        return self._words[0]

    def write(self, condition: dict[str, Any]) -> int:
        """Parent: want a condition; returns its generation. ValueError when it does not fit."""
        text = json.dumps(condition).encode()
        if _HEAD.size + len(text) > _BYTES:
            raise ValueError("too many interventions at once")
        self._words[1] = 0  # no length: the text is being written
        self._map[_HEAD.size : _HEAD.size + len(text)] = text
        self._words[1] = len(text)
        self._words[0] += 1
        return self._words[0]

    def read(self) -> tuple[int, dict[str, Any]]:
        """Child: the generation wanted and its condition."""
        for _ in range(_PATIENCE):
            generation, length = self._words[0], self._words[1]
            text = bytes(self._map[_HEAD.size : _HEAD.size + length])
            if (generation, length) == (self._words[0], self._words[1]) and (length or not generation):
                return generation, json.loads(text) if text else {}
            time.sleep(0.001)
        raise TimeoutError("the parent stopped while it wrote a condition")

    def applied(self, generation: int) -> None:
        """Child's main process: this generation is in force from now on."""
        self._words[3] = self._clock()
        self._words[2] = generation

    @property
    def in_force(self) -> tuple[int, float]:
        """Parent: the generation in force in the main process, and since when (monotonic seconds)."""
        return self._words[2], self._words[3] / 1e9

    def count_real_call(self) -> None:
        """Child: a stub had no answer recorded yet and let the call through. Counts of two processes may collide."""
        self._words[4] += 1

    @property
    def real_calls(self) -> int:
        """Calls let through by stubs so far: while it grows, stubs are still learning."""
        return self._words[4]
