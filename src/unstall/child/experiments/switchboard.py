"""The board by which the parent tells a running program, and its workers, which condition is in force.

Each condition is a file of JSON in the run directory, numbered; the number of the one that is wanted stands in a small
memory-mapped file. Each process of the program compares it with the one it last applied: one read of shared memory.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FILE_NAME = "switchboard"
_BYTES = 32
# Words: the generation wanted; written by the main process, the one in force and since when (ns); real calls so far.
_WANTED, _APPLIED, _SINCE, _REAL_CALLS = range(4)


class Switchboard:
    """One side's view of the board. ``create``: the parent's, which makes it; ``clock``: monotonic nanoseconds."""

    def __init__(
        self, directory: str | os.PathLike[str], *, create: bool = False, clock: Callable[[], int] = time.monotonic_ns
    ):
        self._clock = clock
        self._path = os.path.join(directory, FILE_NAME)
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        try:
            if create:
                os.ftruncate(fd, _BYTES)
            self._words = memoryview(mmap.mmap(fd, _BYTES)).cast("Q")
        finally:
            os.close(fd)

    @property
    def generation(self) -> int:
        """The number of the condition wanted; 0 before the first."""
        return self._words[_WANTED]

    def write(self, condition: dict[str, Any]) -> int:
        """Parent: want a condition; returns its generation."""
        generation = self.generation + 1
        with open(f"{self._path}-{generation}.json", "w", encoding="utf-8") as file:
            json.dump(condition, file)
        self._words[_WANTED] = generation  # not before the file is whole
        return generation

    def read(self) -> tuple[int, dict[str, Any]]:
        """Child: the generation wanted and its condition."""
        generation = self.generation
        if not generation:
            return 0, {}
        with open(f"{self._path}-{generation}.json", encoding="utf-8") as file:
            return generation, json.load(file)

    def applied(self, generation: int) -> None:
        """Child's main process: this generation is in force from now on."""
        self._words[_SINCE] = self._clock()
        self._words[_APPLIED] = generation

    @property
    def in_force(self) -> tuple[int, float]:
        """Parent: the generation in force in the main process, and since when (monotonic seconds)."""
        return self._words[_APPLIED], self._words[_SINCE] / 1e9

    def count_real_call(self) -> None:
        """Child: a stub had no answer recorded yet and let the call through. Counts of two processes may collide."""
        self._words[_REAL_CALLS] += 1

    @property
    def real_calls(self) -> int:
        """Calls let through by stubs so far: while it grows, stubs are still learning."""
        return self._words[_REAL_CALLS]
