"""The rows of a pandas frame one after the other, without a pandas object for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class _Row:
    """A row of ``frame.iterrows()``, of which only items and attributes are asked."""

    def __init__(self, frame: Any, number: Any, values: Any, places: Any) -> None:
        self._frame, self._number, self._values, self._places = frame, number, values, places

    def __getitem__(self, name: Any) -> Any:
        place = self._places.get(name) if type(name) is str else None
        return self._values[place] if place is not None else self._whole()[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole(), name)

    def _whole(self) -> Any:
        return next(self._frame.iloc[self._number : self._number + 1].iterrows())[1]


def _each_row(frame: Any) -> Iterator[Any]:
    """``frame.iterrows()``."""
    whole = next(frame.iterrows(), None)
    values = frame.values
    is_plain = whole is not None and whole[1].dtype == values.dtype and values.dtype.kind in "biufcO"
    if is_plain and values.dtype.kind == "O":  # where a row holds dates and gaps alone, pandas makes dates of both
        is_plain = any(type(kind).__module__.startswith("numpy") and kind.kind in "biu" for kind in frame.dtypes)
    if not is_plain or not frame.columns.is_unique:
        yield from frame.iterrows()
        return
    places = {name: place for place, name in enumerate(frame.columns)}
    for number, (label, row) in enumerate(zip(frame.index, values)):
        yield label, _Row(frame, number, row, places)
