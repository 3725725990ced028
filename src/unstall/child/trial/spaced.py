"""Readings of something that are taken again and again, a bounded number of them, at equal distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Spaced(Generic[T]):
    """The more moments, the further apart the readings: where they are too many, every second one is dropped."""

    def __init__(self, read: Callable[[], T], most: int):
        self.read, self.most = read, most
        self.readings: list[T] = []
        self.every = 1
        self.moments = 0

    def note(self) -> None:
        """Once more a moment to look."""
        if self.moments % self.every == 0:
            self.readings.append(self.read())
            if len(self.readings) == self.most:
                self.readings, self.every = self.readings[::2], 2 * self.every
        self.moments += 1
