"""How many of the batches that loaders gave are alive each time that a loader has given all of its data.

A cache of batches is full after its first epoch. Where each epoch leaves more of them behind, a longer run needs more
memory: with small batches far too little to be seen in the memory of a short one.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from unstall.child.trial.tensors import tensors

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 1_000_000
"""Tensors that are watched at once, some hundred bytes each."""


class KeptBatches:
    """Of all loaders; in tensors, as a batch that is taken apart may be kept in parts."""

    def __init__(self) -> None:
        self._alive: dict[int, weakref.ref[Any]] = {}  # no set of tensors: their `==` is not one truth value
        self._given = 0
        self._ends: dict[int, list[tuple[int, int]]] = {}
        self._of: dict[int, int] = {}

    def given(self, batch: Any, data: int) -> None:
        """A loader of ``data`` (its identity) has given a batch."""
        found = tensors(batch)
        self._given += len(found)
        self._of[data] = self._of.get(data, 0) + len(found)
        for tensor in found:
            if len(self._alive) < _MOST:
                key = id(tensor)
                self._alive[key] = weakref.ref(tensor, self._forget(key))

    def ended(self, data: int) -> None:
        """It has given all."""
        self._ends.setdefault(data, []).append((self._given, len(self._alive)))

    def ends(self) -> list[tuple[int, int]]:
        """(tensors given so far, those alive) at each end of the data that gave the most."""
        most = max(self._of, key=lambda data: self._of[data], default=0)
        return self._ends.get(most, [])

    def _forget(self, key: int) -> Callable[[weakref.ref[Any]], None]:
        def forget(reference: weakref.ref[Any]) -> None:
            if self._alive.get(key) is reference:
                del self._alive[key]

        return forget
