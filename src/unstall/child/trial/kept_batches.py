"""How many of the batches that loaders gave are alive each time that a loader has given all of its data.

A cache of batches is full after its first epoch. Where each epoch leaves more of them behind, a longer run needs more
memory: with small batches far too little to be seen in the memory of a short one.
"""

from __future__ import annotations

import weakref
from typing import Any

from unstall.child.trial.tensors import tensors

_MOST = 100_000
"""Tensors that are watched at once, some hundred bytes each: where more are kept, no more are seen to be."""


class KeptBatches:
    """Of all loaders; in tensors, as a batch that is taken apart may be kept in parts."""

    def __init__(self) -> None:
        # By identity: in a set they would be compared, and `==` of tensors is not one truth value.
        self._alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._given = 0
        self._of: dict[int, int] = {}
        self._ends: dict[int, list[tuple[int, int]]] = {}

    def given(self, batch: Any, data: int) -> None:
        """A loader of ``data`` (its identity) has given a batch."""
        found = tensors(batch)
        self._given += len(found)
        self._of[data] = self._of.get(data, 0) + len(found)
        for tensor in found:
            if len(self._alive) < _MOST:
                self._alive[id(tensor)] = tensor

    def ended(self, data: int) -> None:
        """It has given all."""
        self._ends.setdefault(data, []).append((self._given, len(self._alive)))

    def ends(self) -> list[tuple[int, int]]:
        """(tensors given so far, those alive) at each end of the data that gave the most."""
        most = max(self._of, key=lambda data: self._of[data], default=0)
        return self._ends.get(most, [])
