"""The ledger: every run of a project, in a file of the project's state or in a team's database."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from unstall import environment
from unstall.benchmark import rundir, state
from unstall.benchmark.archive import REPORT_NAME
from unstall.records.comparison import Entry
from unstall.records.report import Report
from unstall.repeat import revision, schema
from unstall.repeat.database import LedgerError, connect
from unstall.repeat.entry import COLUMNS, entry_of, from_row, to_row
from unstall.repeat.revision import Revision

_FILE = "ledger.sqlite"
_UPSERT = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join(':' + name for name in COLUMNS)}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS if name != 'id')}"
)


class Ledger:
    """An open ledger; use it as a context manager. Everything it does may raise :class:`LedgerError`."""

    def __init__(self, where: str | Path):
        self._database = connect(where)
        self.name = self._database.name
        try:
            schema.migrate(self._database)
        except LedgerError:
            self._database.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, entries: Iterable[Entry]) -> None:
        """Add runs, all or none; one that is there already is replaced."""
        with self._database.transaction(write=True) as changing:
            for entry in entries:
                changing.run(_UPSERT, to_row(entry))

    def runs(self, project: str | None = None, *, most: int | None = None) -> list[Entry]:
        """The latest ``most`` runs of a project, or of all, oldest first. Rows that make no sense are left out."""
        where = "" if project is None else "WHERE project = :project "
        limit = "" if most is None else f"LIMIT {int(most)}"
        sql = f"SELECT {', '.join(COLUMNS)} FROM runs {where}ORDER BY started DESC, id DESC {limit}"
        with self._database.transaction() as looking:
            rows = looking.run(sql, {} if project is None else {"project": project})
        found = []
        for row in reversed(rows):
            try:
                found.append(from_row(row))
            except msgspec.ValidationError:
                continue
        return found


def default() -> str | Path:
    """The ledger that is meant when none is named: the environment's, or the project's own."""
    return os.environ.get(environment.LEDGER) or state.writable() / _FILE


def record(report: Report, directory: Path, where: str | Path | None = None, *, code: Revision | None = None) -> None:
    """Enter a run that has just ended.

    Args:
        report: its report, of any kind.
        directory: where its recording is kept.
        where: the ledger; the environment's, or the one beside the recording, if not given.
        code: what was run; what is checked out in the working directory if not given.
    """
    ledger = where or os.environ.get(environment.LEDGER) or directory.parent.parent / _FILE
    entry = entry_of(report, directory, code or revision.of(Path.cwd()))
    with Ledger(ledger) as opened:
        opened.add([entry])


def keep(report: Report, where: str | Path | None = None) -> str | None:
    """Keep a report that came about otherwise than by ``unstall run``, and enter it; why that failed, if it did.

    For ``unstall simplify`` and ``optimize``: the report lies where those of runs do. One line to show, and nothing to
    raise: the work is done.
    """
    home = state.writable()
    directory = home / "runs" / report.run.id
    try:
        directory.mkdir(parents=True, exist_ok=True)
        rundir.hide(home)
        (directory / REPORT_NAME).write_bytes(report.to_json())
        record(report, directory, where)
    except OSError as error:
        return f"this report could not be kept: {error.strerror or error}"
    except LedgerError as error:
        return f"this report is not in the history: {error}"
    return None


def history(where: str | Path | None = None, *, everything: bool = False, most: int | None = None) -> list[Entry]:
    """The runs of this project, oldest first; ``everything``: of all projects in the ledger.

    A ledger file that is not there yet is not made for the asking: it has no runs.
    """
    ledger = where or default()
    if (isinstance(ledger, Path) or "://" not in ledger) and not Path(ledger).exists():
        return []
    with Ledger(ledger) as opened:
        return opened.runs(None if everything else revision.of(Path.cwd()).project, most=most)
