"""An SQLite file whose tables and columns may be missing: what is absent reads as empty, or as -1."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 100_000
"""Rows that are Python objects at a time."""
BATCH_S = 8.0
"""So many rows of a table take a fraction of this: what takes longer is no export."""
_OPERATIONS = 100_000  # of SQLite's virtual machine, between two looks at the clock
_LONGEST = 16 << 20  # bytes of a text


class TraceDatabase:
    """Read-only; the file and its folder are left as they are.

    A stranger may have made the file: only tables are read, for a view may never end, and no batch of rows takes long.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
        self._connection.set_progress_handler(self._is_past_deadline, _OPERATIONS)
        self._deadline = time.monotonic() + BATCH_S
        if hasattr(self._connection, "setlimit"):  # Python 3.11
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        try:
            self._connection.execute("PRAGMA trusted_schema = OFF")
            listed = self._connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
            self.tables = {str(name): self._columns_of(str(name)) for (name,) in listed.fetchall()}
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the second: its message quotes damaged bytes
            self._connection.close()
            raise sqlite3.DatabaseError("its list of tables cannot be read") from error

    def __enter__(self) -> TraceDatabase:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def _columns_of(self, table: str) -> set[str]:
        return {row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})")}

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a table, None for columns that it has not; none if there is no such table."""
        if table not in self.tables:
            return
        selected = (_quoted(column) if column in self.tables[table] else "NULL" for column in columns)
        cursor = self._connection.execute(f"SELECT {', '.join(selected)} FROM {_quoted(table)}")
        while rows := self._batch(cursor):
            yield from rows

    def columns(self, table: str, *columns: str) -> list[NDArray[np.int64]]:
        """Columns of integers, -1 for what is missing or no integer."""
        if table not in self.tables:
            return [np.zeros(0, np.int64) for _ in columns]
        selected = (
            f"CASE typeof({_quoted(column)}) WHEN 'integer' THEN {_quoted(column)} ELSE -1 END"
            if column in self.tables[table]
            else "-1"
            for column in columns
        )
        cursor = self._connection.execute(f"SELECT {', '.join(selected)} FROM {_quoted(table)}")
        parts = [np.zeros((0, len(columns)), np.int64)]
        while rows := self._batch(cursor):
            parts.append(np.array(rows, np.int64))
        return list(np.ascontiguousarray(np.concatenate(parts).T))

    def _batch(self, cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
        self._deadline = time.monotonic() + BATCH_S
        return cursor.fetchmany(ROWS)

    def _is_past_deadline(self) -> bool:
        """Whether SQLite is to give up."""
        return time.monotonic() > self._deadline


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
