"""Rows of a pandas frame in a loop, without a pandas object for each: items of a row are taken from their columns."""

from __future__ import annotations

from typing import Any


class _Frame:
    """A frame or a series for as long as a loop lasts that does not change it: its columns are looked up once."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.kind, self.dtype = frame, "", None
        self.columns: dict[Any, Any] = {}
        if type(frame).__module__.startswith("pandas"):
            self.kind = type(frame).__name__
        if self.kind == "DataFrame" and (not frame.columns.is_unique or not len(frame)):
            self.kind = ""
        if self.kind == "DataFrame":
            self.dtype = frame.iloc[0].dtype  # of every row: a row of pandas has one for all columns

    def column(self, name: Any) -> Any:
        """(the column, its values)."""
        found = self.columns.get(name)
        if found is None:
            column = self.frame[name]
            found = self.columns[name] = column.array, column.values
        return found

    def rows(self, index: Any) -> Any:
        """``frame.iloc[index]``, of which only items and attributes are asked."""
        if self.kind == "DataFrame" and (type(index) is slice or _is_number(index)):
            return _Rows(self, index)
        return self.frame.iloc[index]

    def plain(self, index: Any) -> Any:
        """The same of ``frame[index]``."""
        is_slice = self.kind == "DataFrame" and type(index) is slice
        if is_slice and type(self.frame.index).__name__ == "RangeIndex" and _is_by_place(index):
            return _Rows(self, index)
        return self.frame[index]

    def cell(self, index: Any) -> Any:
        """``frame.iloc[index]``, whatever is done with it."""
        if self.kind != "Series" or not _is_number(index):
            return self.frame.iloc[index]
        if not self.columns:
            self.columns[""] = self.frame.array
        return self.columns[""][index]


class _Rows:
    """A row of a frame, or several that follow each other."""

    def __init__(self, of: Any, index: Any) -> None:
        self._of, self._index = of, index

    def __getitem__(self, name: Any) -> Any:
        if type(name) is not str or type(self._index) is slice:
            return self._whole()[name]
        value, dtype = self._of.column(name)[0][self._index], self._of.dtype
        return dtype.type(value) if dtype.kind in "biufc" else value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole(), name)

    def _whole(self) -> Any:
        return self._of.frame.iloc[self._index]


def _values(rows: Any, name: Any) -> Any:
    """``rows[name].values``."""
    if type(rows) is _Rows and type(rows._index) is slice and type(name) is str:
        return rows._of.column(name)[1][rows._index]
    return rows[name].values


def _is_number(index: Any) -> bool:
    """Of a row: an int of Python's or NumPy's, no bool."""
    kind = type(index)
    return kind is int or (kind.__module__ == "numpy" and kind.__name__.startswith(("int", "uint")))


def _is_by_place(index: Any) -> bool:
    """Whether a slice has numbers for its ends."""
    return all(end is None or _is_number(end) for end in (index.start, index.stop, index.step))
