"""Two ways to the same tables: SQLite by the standard library, anything else through SQLAlchemy.

Both take the same SQL with ``:name`` parameters, so there is one ledger and not two, and a plain installation needs
no database library. Every failure of either is a :class:`LedgerError` of one line.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from unstall import environment

_BUSY_S = 10.0  # to wait for another run that is writing
_MISSING = 'a ledger by URL needs SQLAlchemy and a driver; run: pip install "unstall[team]"'

Row = Mapping[str, Any]


class LedgerError(Exception):
    """The ledger cannot be read or written; the message is one line and names it."""


class Database(Protocol):
    """What the ledger asks of a database."""

    name: str
    tables_named: str
    """The query that gives a row for a table called ``:name``."""

    def transaction(self, *, write: bool = False) -> contextlib.AbstractContextManager[Transaction]:
        """All of it or nothing; with ``write``, no other writer comes in between."""

    def close(self) -> None: ...


class Transaction(Protocol):
    """Statements that belong together."""

    def run(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """The rows, none for a statement that gives none."""


def connect(where: str | Path) -> Database:
    """Open a database: the path of an SQLite file, or a URL as SQLAlchemy takes it."""
    if isinstance(where, Path) or "://" not in where:
        return _Sqlite(Path(where))
    if where.startswith("sqlite:///"):
        return _Sqlite(Path(where.removeprefix("sqlite:///")))
    return _Sql(where)


class _Sqlite:
    """An SQLite file with a write-ahead log: readers never wait, writers wait for each other."""

    tables_named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = :name"

    def __init__(self, path: Path):
        self.name = str(path)
        self._connection: sqlite3.Connection | None = None
        with self._telling():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
            self._connection.row_factory = sqlite3.Row
            self._use_write_ahead_log()

    def _use_write_ahead_log(self) -> None:
        """The switch takes the whole file, and SQLite does not wait for it by itself."""
        assert self._connection is not None
        deadline = time.monotonic() + _BUSY_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextlib.contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[_SqliteTransaction]:
        connection = self._connection
        assert connection is not None
        with self._telling():
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield _SqliteTransaction(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"the ledger {self.name}: {_sqlite_trouble(error)}") from error


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def run(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        return [dict(row) for row in self._connection.execute(sql, dict(values or {}))]


def _sqlite_trouble(error: Exception) -> str:
    text = str(getattr(error, "strerror", None) or error)
    if "full" in text or "disk I/O" in text:
        return f"{text}; make room and run again, or free some with: unstall prune"
    if any(sign in text for sign in ("not a database", "malformed", "no such table", "no such column", "decode to")):
        return f"{text}; it is no ledger, or a damaged one: move it away, and the next run begins a new one"
    if "readonly" in text or "unable to open" in text:
        return f"{text}; name another by --ledger or {environment.LEDGER}"
    if "locked" in text:
        return f"another run has been writing to it for {_BUSY_S:.0f} s"
    return text


class _Sql:
    """A database server, or whatever else SQLAlchemy can reach."""

    tables_named = (
        "SELECT table_name FROM information_schema.tables WHERE table_name = :name AND table_schema = current_schema()"
    )

    def __init__(self, url: str):
        self.name = without_password(url)
        try:
            import sqlalchemy
        except ImportError as error:
            raise LedgerError(_MISSING) from error
        self._text, self._failure = sqlalchemy.text, sqlalchemy.exc.SQLAlchemyError
        try:
            engine_url = sqlalchemy.make_url(url)
            if engine_url.drivername in ("postgresql", "postgres"):
                engine_url = engine_url.set(drivername="postgresql+psycopg")
            self._engine = sqlalchemy.create_engine(engine_url, pool_pre_ping=True)
        except ImportError as error:
            raise LedgerError(_MISSING) from error
        except self._failure as error:
            raise self._trouble(error) from error

    @contextlib.contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[_SqlTransaction]:
        try:
            with self._engine.begin() as connection:
                if write and self._engine.dialect.name == "postgresql":
                    # One writer at a time, as in SQLite: two first runs of a team must not both make the tables.
                    connection.execute(self._text("SELECT pg_advisory_xact_lock(7859466171)"))
                yield _SqlTransaction(connection, self._text)
        except self._failure as error:
            raise self._trouble(error) from error

    def close(self) -> None:
        self._engine.dispose()

    def _trouble(self, error: Exception) -> LedgerError:
        cause = str(getattr(error, "orig", None) or error).strip()
        first_line = cause.splitlines()[0] if cause else type(error).__name__
        return LedgerError(f"the ledger {self.name}: {without_password(first_line)}")


class _SqlTransaction:
    def __init__(self, connection: Any, text: Any):
        self._connection, self._text = connection, text

    def run(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        result = self._connection.execute(self._text(sql), dict(values or {}))
        return [dict(row) for row in result.mappings()] if result.returns_rows else []


def without_password(text: str) -> str:
    """A URL as it may be shown."""
    return re.sub(r"(?<=://)([^/@:\s]*):[^/@\s]*@", r"\1:***@", text)
