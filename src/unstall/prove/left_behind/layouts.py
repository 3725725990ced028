"""In which order a file of ``torch.save`` holds the numbers of a tensor: by rows, or by channels, as a model in another
memory format has them. Both load as the same tensor.

Only where a storage is one tensor's alone, and all of it: where several share one, or see a part, the order is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

_INTEGERS = frozenset(("BININT", "BININT1", "BININT2", "LONG1"))
_STORAGE, _ENDS = "BINPERSID", frozenset(("NEWTRUE", "NEWFALSE"))


class Layout(NamedTuple):
    """Of a tensor in a storage of its own."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    """How many numbers further the next one lies, in each dimension."""

    @property
    def order(self) -> list[int]:
        """The dimensions, the one in which numbers lie furthest apart first; those of one number say nothing."""
        return sorted(range(len(self.size)), key=lambda dim: (self.size[dim] == 1, -self.stride[dim]))

    def is_dense(self) -> bool:
        """Whether the tensor has each number of its storage once."""
        apart = 1
        for dim in reversed(self.order):
            if self.size[dim] != 1:
                if self.stride[dim] != apart:
                    return False
                apart *= self.size[dim]
        return True

    def in_rows(self, content: bytes, width: int) -> bytes:
        """The storage's numbers, of ``width`` bytes each, in the order of rows. Raises ValueError at another number."""
        stored = np.frombuffer(content, f"V{width}").reshape([self.size[dim] for dim in self.order])
        return stored.transpose(np.argsort(self.order)).tobytes()


def of_tensor(offset: int, size: Sequence[int], stride: Sequence[int], numbers: int) -> Layout | None:
    """None of a tensor that is not all of its storage, of so many numbers, or has some of them twice."""
    layout = Layout(tuple(size), tuple(stride))
    if not all(type(number) is int for number in (*size, *stride)):
        return None
    is_whole = offset == 0 and len(size) == len(stride) and math.prod(size) == numbers
    return layout if is_whole and layout.is_dense() else None


def without_order(operations: Sequence[tuple[str, object]], is_known: Sequence[bool]) -> Iterator[tuple[str, object]]:
    """A pickle's operations, without the strides of tensors whose layout is known.

    Args:
        operations: name and argument of each, as ``pickletools`` has them.
        is_known: of each storage that is referred to, in turn.
    """
    place, number = 0, -1
    while place < len(operations):
        yield operations[place]
        number += operations[place][0] == _STORAGE
        if operations[place][0] != _STORAGE or number >= len(is_known) or not is_known[number]:
            place += 1
            continue
        end = next((at for at in range(place, len(operations)) if operations[at][0] in _ENDS), len(operations))
        integers = [at for at in range(place, end) if operations[at][0] in _INTEGERS]
        strides = frozenset(integers[1 + len(integers) // 2 :])  # behind the offset, and as many sizes
        yield from (("stride", None) if at in strides else operations[at] for at in range(place + 1, end))
        place = end
