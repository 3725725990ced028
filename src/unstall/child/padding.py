"""How much of a batch of sequences is padding. Runs in the user's process, on its first batches."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from unstall.child import reading

_FORMATS = {"torch.int64": "q", "torch.int32": "i"}
_SHORTEST = 8
"""Positions of a row: fewer are fields of a table, not a sequence."""
_MOST = 65_536
"""Numbers that are looked at: a millisecond or two."""


def facts(batch: Any) -> dict[str, float]:
    """Of rows of whole numbers, shape (rows, positions), that end, or begin, with one number again and again.

    ``padding``: share of all positions; ``spare``: of those that are padding in every row. Nothing where the rows are
    no sequences of several lengths.
    """
    rows = _rows(batch)
    best = max((_runs(rows), _runs([row[::-1] for row in rows])), key=sum, default=[]) if rows else []
    if not any(best) or len(set(best)) == 1:
        return {}
    length = len(rows[0])
    return {"padding": sum(best) / (len(rows) * length), "spare": min(best) / length}


def _rows(batch: Any) -> list[Sequence[int]]:
    shape = reading.shape(batch)
    if shape is None or len(shape) != 2:
        return []
    count, length = shape[0] * shape[1], shape[1]
    if shape[0] < 2 or length < _SHORTEST or count > _MOST:
        return []
    known = reading.memory(batch, _FORMATS, count)
    if known is None:
        return []
    dtype, read = known
    numbers = struct.unpack(f"{count}{_FORMATS[dtype]}", read)
    return [numbers[start : start + length] for start in range(0, count, length)]


def _runs(rows: Sequence[Sequence[int]]) -> list[int]:
    """How often each row ends with the number that most rows end with; a number that stands there once is a token."""
    last = [row[-1] for row in rows]
    pad = max(set(last), key=last.count)
    runs = []
    for row in rows:
        place = len(row)
        while place and row[place - 1] == pad:
            place -= 1
        runs.append(len(row) - place)
    return runs if sum(run > 1 for run in runs) * 2 > len(rows) else [0] * len(rows)
