"""The ledger's tables, and how an older ledger becomes this one: steps in order, each applied once.

The SQL is what SQLite and PostgreSQL both take. A step that has been released is never changed: add another.
"""

from __future__ import annotations

from collections.abc import Sequence

from unstall.repeat.database import LedgerDatabase, LedgerError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            kind TEXT NOT NULL,
            project TEXT NOT NULL,
            started TEXT NOT NULL,
            host TEXT NOT NULL,
            directory TEXT NOT NULL,
            command TEXT NOT NULL,
            revision TEXT,
            changes TEXT,
            duration_s DOUBLE PRECISION NOT NULL,
            exit_code INTEGER,
            steps BIGINT NOT NULL,
            steps_per_s DOUBLE PRECISION,
            samples_per_s DOUBLE PRECISION,
            step_p50_s DOUBLE PRECISION,
            step_p95_s DOUBLE PRECISION,
            pattern TEXT NOT NULL,
            cause TEXT,
            culprit TEXT,
            headroom DOUBLE PRECISION,
            known_by TEXT,
            confidence TEXT,
            gap DOUBLE PRECISION,
            speedup DOUBLE PRECISION,
            other_cores DOUBLE PRECISION,
            environment TEXT NOT NULL
        )
        """,
        "CREATE INDEX runs_by_project ON runs (project, started)",
    ),
)
"""The n-th entry takes a ledger from version n to n + 1."""


def migrate(database: LedgerDatabase, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the ledger to this version; many may do so at once. LedgerError if it is newer than this unstall."""
    with database.transaction():
        if _version(database) == len(migrations):
            return
    with database.transaction(write=True):
        database.run("CREATE TABLE IF NOT EXISTS ledger_version (version INTEGER NOT NULL)")
        version = _version(database)
        if version > len(migrations):
            raise LedgerError(
                f"the ledger {database.name} was written by a newer unstall (version {version}): update this one"
            )
        for statements in migrations[version:]:
            for statement in statements:
                database.run(statement)
        database.run("DELETE FROM ledger_version")
        database.run("INSERT INTO ledger_version (version) VALUES (:version)", {"version": len(migrations)})


def _version(database: LedgerDatabase) -> int:
    """0 for a ledger that is new."""
    if not database.run(database.tables_named, {"name": "ledger_version"}):
        return 0
    rows = database.run("SELECT version FROM ledger_version")
    version = rows[0]["version"] if rows else 0
    if not isinstance(version, int) or version < 0:
        raise LedgerError(f"the ledger {database.name} has an invalid version: move it away")
    return version
