"""The ledger: every run of a project, in a file of the project's state or in a team's database."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from unstall import environment
from unstall.benchmark import rundir, state
from unstall.benchmark.archive import REPORT_NAME
from unstall.records.comparison import Entry
from unstall.records.encoding import plain_json
from unstall.records.report import Report, costliest
from unstall.records.vocabulary import NO_VERDICT, UNEXPLAINED
from unstall.repeat import revision, schema
from unstall.repeat.database import LedgerError, connect
from unstall.repeat.revision import Revision
from unstall.repeat.thresholds import BUSY_S

_FILE = "ledger.sqlite"
_COLUMNS = Entry.__struct_fields__
_STRUCTURED = ("command", "environment")
_UPSERT = (
    f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({', '.join(':' + name for name in _COLUMNS)}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS if name != 'id')}"
)


class Ledger:
    """An open ledger; use it as a context manager. Everything it does may raise :class:`LedgerError`."""

    def __init__(self, address: str | Path, *, busy_s: float = BUSY_S):
        self._database = connect(address, busy_s=busy_s)
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
        with self._database.transaction(write=True) as transaction:
            for entry in entries:
                transaction.run(_UPSERT, _to_row(entry))
                if not transaction.run("SELECT id FROM runs WHERE id = :id", {"id": entry.id}):
                    raise LedgerError(f"the ledger {self.name} did not keep the run {entry.id}: move it away")

    def runs(self, project: str | None = None, *, most: int | None = None) -> list[Entry]:
        """The latest ``most`` runs of a project, or of all, oldest first. Invalid rows are left out."""
        condition = "" if project is None else "WHERE project = :project "
        limit = "" if most is None else f"LIMIT {int(most)}"
        sql = f"SELECT {', '.join(_COLUMNS)} FROM runs {condition}ORDER BY started DESC, id DESC {limit}"
        with self._database.transaction() as transaction:
            rows = transaction.run(sql, {} if project is None else {"project": project})
        entries = []
        for row in reversed(rows):
            try:
                entries.append(_from_row(row))
            except msgspec.ValidationError:
                continue
        return entries


def default() -> str | Path:
    """The ledger that is meant when none is named: the environment's, or the project's own."""
    return os.environ.get(environment.LEDGER) or state.writable() / _FILE


def record(report: Report, directory: Path, ledger: str | Path | None = None, *, code: Revision | None = None) -> None:
    """Enter a run that has just ended.

    Args:
        report: its report, of any kind.
        directory: where its recording is kept.
        ledger: its file or URL; the environment's, or the one beside the recording, if not given.
        code: what was run; what is checked out in the working directory if not given.
    """
    ledger = ledger or os.environ.get(environment.LEDGER) or directory.parent.parent / _FILE
    entry = entry_of(report, directory, code or revision.of(Path.cwd()))
    with Ledger(ledger) as opened:
        opened.add([entry])


def keep(report: Report, ledger: str | Path | None = None) -> str | None:
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
        record(report, directory, ledger)
    except OSError as error:
        return f"this report could not be kept: {error.strerror or error}"
    except LedgerError as error:
        return f"this report is not in the history: {error}"
    return None


def history(ledger: str | Path | None = None, *, everything: bool = False, most: int | None = None) -> list[Entry]:
    """The runs of this project, oldest first; ``everything``: of all projects in the ledger.

    Where there is no ledger file yet, none is made: there are no runs.
    """
    ledger = ledger or default()
    if (isinstance(ledger, Path) or "://" not in ledger) and not Path(ledger).exists():
        return []
    with Ledger(ledger) as opened:
        return opened.runs(None if everything else revision.of(Path.cwd()).project, most=most)


def entry_of(report: Report, directory: Path, revision: Revision) -> Entry:
    """The ledger's row for a report."""
    run, verdict, rates = report.run, report.verdict, report.throughput
    step = rates.step_s
    return Entry(
        id=run.id,
        kind=report.kind,
        project=revision.project,
        started=run.started,
        host=platform.node(),
        directory=str(directory),
        command=run.command,
        revision=revision.commit,
        changes=revision.changes,
        duration_s=run.duration_s,
        exit_code=run.exit_code,
        steps=run.steps,
        steps_per_s=rates.steps_per_s,
        samples_per_s=rates.samples_per_s,
        step_p50_s=step.p50 if step else None,
        step_p95_s=step.p95 if step else None,
        pattern=verdict.pattern,
        cause=verdict.cause,
        culprit=verdict.culprit.label if verdict.culprit else None,
        headroom=verdict.headroom if run.steps and verdict.pattern != NO_VERDICT else None,
        known_by=verdict.headroom_known_by,
        confidence=verdict.confidence,
        gap=gap_of(report),
        speedup=report.total_speedup,
        other_cores=report.utilization.other_processes_cores,
        environment=run.environment,
    )


def gap_of(report: Report) -> float | None:
    """1 - actual/ceiling: by the highest measured ceiling if there is one, else by what costs a step most."""
    if not report.run.steps or report.verdict.pattern in (UNEXPLAINED, NO_VERDICT):
        return None
    measured = [
        ceiling.gap for ceiling in report.ceilings if ceiling.known_by == "measured" and ceiling.gap is not None
    ]
    if measured:
        return max(measured)
    stall = costliest(report)
    return 1 - 1 / max(stall.headroom, 1.0) if stall is not None else None


def _to_row(entry: Entry) -> dict[str, Any]:
    """The columns' values, lists and mappings as JSON."""
    row: dict[str, Any] = msgspec.structs.asdict(entry)
    for name in _STRUCTURED:
        row[name] = plain_json(row[name]).decode()
    return row


def _from_row(row: Mapping[str, Any]) -> Entry:
    """The entry of a row. Raises :class:`msgspec.ValidationError` for one that unstall did not write."""
    values = dict(row)
    for name in _STRUCTURED:
        try:
            values[name] = msgspec.json.decode(values[name])
        except (TypeError, msgspec.DecodeError) as error:
            raise msgspec.ValidationError(f"the column {name} is no JSON") from error
    return msgspec.convert(values, Entry)
