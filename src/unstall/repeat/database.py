"""The ledger's database: an SQLite file, or a PostgreSQL server that a team shares.

Both are reached by Python's DB-API with the same SQL, so there is one ledger and not two, and a plain installation
needs no database library. Every failure of either is a :class:`LedgerError` of one line.
"""

from __future__ import annotations

import contextlib
import errno
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unstall import environment
from unstall.repeat.thresholds import BUSY_S, STATEMENT_S
from unstall.text.sanitize import sanitize_line

_MISSING = 'a ledger on a server needs psycopg; run: pip install "unstall[team]"'
_LONGEST = 64 << 20  # bytes of a text in a ledger
_OPERATIONS = 100_000  # of SQLite's virtual machine, between two looks at the clock
_DAMAGE = ("not a database", "malformed", "no such table", "no such column", "decode to", "codec can't decode")
"""What SQLite says of a file that is no ledger."""

Row = Mapping[str, Any]


class LedgerError(Exception):
    """The ledger cannot be read or written; the message is one line and names it."""


class LedgerDatabase:
    """An open database, made by :func:`connect`."""

    tables_named: str
    """The query that gives a row for a table called ``:name``."""
    _begin_writing: tuple[str, ...]
    """Begins a transaction while which nobody else writes."""
    _connection: Any
    _failures: tuple[type[Exception], ...]

    def __init__(self, name: str):
        self.name = name
        """The database's name as it may be shown."""

    def run(self, sql: str, values: Row | None = None) -> list[Row]:
        """Run a statement with parameters ``:name``; its rows, none for a statement that gives none."""
        cursor = self._connection.execute(self._spelled(sql), dict(values or {}))
        columns = [column[0] for column in cursor.description or ()]
        return [dict(zip(columns, row)) for row in cursor] if columns else []

    @contextlib.contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[LedgerDatabase]:
        """All that is run inside or nothing; with ``write``, no other writer comes in between."""
        with self._in_one_line():
            for statement in self._begin_writing if write else ("BEGIN",):
                self._connection.execute(statement)
            try:
                yield self
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(*self._failures):  # SQLite has ended some already
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Nothing can be run afterwards."""
        self._connection.close()

    @contextlib.contextmanager
    def _in_one_line(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise LedgerError(f"the ledger {self.name}: {self._trouble(error)}") from error

    def _spelled(self, sql: str) -> str:
        """The statement as this database's library wants its parameters."""
        return sql

    def _trouble(self, error: Exception) -> str:
        raise NotImplementedError


def connect(address: str | Path, *, busy_s: float = BUSY_S) -> LedgerDatabase:
    """Open the path of an SQLite file, whose other writers are waited for, or a ``postgresql://`` URL."""
    scheme, separator, remainder = str(address).partition("://")
    if isinstance(address, Path) or not separator:
        return _Sqlite(Path(address), busy_s)
    if scheme == "sqlite":
        return _Sqlite(Path(remainder.removeprefix("/")), busy_s)
    return _Postgres(f"{scheme.partition('+')[0]}://{remainder}")  # SQLAlchemy's name of a driver is allowed


class _Sqlite(LedgerDatabase):
    """An SQLite file with a write-ahead log: readers never wait, writers wait for each other."""

    tables_named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = :name"
    _begin_writing = ("BEGIN IMMEDIATE",)
    # The third: SQLite's messages quote damaged bytes. The fourth: an integer of the file that no 64 bits hold.
    _failures = (sqlite3.Error, OSError, UnicodeDecodeError, OverflowError)

    def __init__(self, path: Path, busy_s: float):
        super().__init__(str(path))
        self._busy_s = busy_s
        with self._in_one_line():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():  # SQLite would leave a journal beside a device
                raise OSError(errno.EINVAL, f"it is no file; name another by --ledger or {environment.LEDGER}")
            self._connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
            try:
                self._distrust()
                self._use_write_ahead_log()
                self._check_schema()
            except BaseException:
                self._connection.close()
                raise

    def run(self, sql: str, values: Row | None = None) -> list[Row]:
        """Run a statement, see :meth:`LedgerDatabase.run`; it ends by itself where the file keeps it from ending."""
        self._deadline = time.monotonic() + STATEMENT_S
        return super().run(sql, values)

    def _distrust(self) -> None:
        """Nothing that stands in the file, which may be a stranger's, takes long or has effects outside of it."""
        self._deadline = time.monotonic() + self._busy_s + STATEMENT_S
        self._connection.set_progress_handler(lambda: time.monotonic() > self._deadline, _OPERATIONS)
        if hasattr(self._connection, "setlimit"):  # Python 3.11
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        self._connection.execute("PRAGMA trusted_schema = OFF")

    def _check_schema(self) -> None:
        """LedgerError where the file would do something else than keep rows: lose them, or compute what is read."""
        strange = self.run(
            "SELECT type, name FROM sqlite_master WHERE type = 'trigger' OR "
            "lower(name) IN ('runs', 'ledger_version') AND (type <> 'table' OR sql LIKE 'CREATE VIRTUAL%') "
            "UNION ALL SELECT 'computed column', name FROM pragma_table_xinfo('runs') WHERE hidden <> 0"
        )
        for row in strange[:1]:
            raise LedgerError(
                f"the ledger {self.name} has the {sanitize_line(str(row['type']))} {sanitize_line(str(row['name']))}, "
                "which is not unstall's: drop it, or move the ledger away"
            )

    def _use_write_ahead_log(self) -> None:
        """The switch takes the whole file, and SQLite does not wait for it by itself."""
        deadline = time.monotonic() + self._busy_s
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _trouble(self, error: Exception) -> str:
        text = sanitize_line(str(getattr(error, "strerror", None) or error))
        if "full" in text or "disk I/O" in text:
            return f"{text}; make room and run again, or free some with: unstall prune"
        if any(sign in text for sign in _DAMAGE):
            return f"{text}; it is not a ledger, or a damaged one: move it away, and the next run starts a new one"
        if "readonly" in text or "unable to open" in text:
            return f"{text}; name another with --ledger or {environment.LEDGER}"
        if "interrupted" in text:
            return f"a statement took more than {STATEMENT_S:.0f} s; move it away, and the next run starts a new one"
        if "locked" in text:
            return f"another run has been writing to it for {self._busy_s:.0f} s"
        return text


class _Postgres(LedgerDatabase):
    """A PostgreSQL server."""

    tables_named = (
        "SELECT table_name FROM information_schema.tables WHERE table_name = :name AND table_schema = current_schema()"
    )
    # One writer at a time, as in SQLite: two first runs of a team must not both make the tables.
    _begin_writing = ("BEGIN", "SELECT pg_advisory_xact_lock(7859466171)")

    def __init__(self, url: str):
        super().__init__(without_password(url))
        if not url.startswith(("postgresql:", "postgres:")):
            raise LedgerError(f"the ledger {self.name}: give a file or postgresql://user@host/database")
        try:
            import psycopg
        except ImportError as error:
            raise LedgerError(_MISSING) from error
        self._failures = (psycopg.Error,)
        with self._in_one_line():
            self._connection = psycopg.connect(url, autocommit=True)

    def _spelled(self, sql: str) -> str:
        return re.sub(r":(\w+)", r"%(\1)s", sql)

    def _trouble(self, error: Exception) -> str:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return without_password(lines[0])


def without_password(text: str) -> str:
    """A URL as it may be shown."""
    return re.sub(r"(?<=://)([^/@:\s]*):[^/@\s]*@", r"\1:***@", text)
