"""A run as the ledger holds it: one row, enough for history and the stopping rule without any other file."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from unstall.records.comparison import Entry
from unstall.records.report import Finding, Report
from unstall.repeat.revision import Revision

COLUMNS = Entry.__struct_fields__
_STRUCTURED = ("command", "environment")


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
        culprit=_place(verdict),
        headroom=verdict.headroom,
        known_by=verdict.headroom_known_by,
        confidence=verdict.confidence,
        gap=gap_of(report),
        speedup=report.total_speedup,
        other_cores=report.utilization.other_processes_cores,
        environment=run.environment,
    )


def gap_of(report: Report) -> float | None:
    """1 - actual/ceiling: by the highest measured ceiling if there is one, else by the verdict's headroom."""
    if not report.run.steps:
        return None
    measured = [
        ceiling.gap for ceiling in report.ceilings if ceiling.known_by == "measured" and ceiling.gap is not None
    ]
    if measured:
        return max(measured)
    return 1 - 1 / max(report.verdict.headroom, 1.0)


def to_row(entry: Entry) -> dict[str, Any]:
    """Column by column, lists and mappings as JSON."""
    row: dict[str, Any] = msgspec.structs.asdict(entry)
    for name in _STRUCTURED:
        row[name] = msgspec.json.encode(row[name]).decode()
    return row


def from_row(row: Mapping[str, Any]) -> Entry:
    """Back again; raises :class:`msgspec.ValidationError` for a row that nobody's unstall wrote."""
    values = dict(row)
    for name in _STRUCTURED:
        try:
            values[name] = msgspec.json.decode(values[name])
        except (TypeError, msgspec.DecodeError) as error:
            raise msgspec.ValidationError(f"the column {name} is no JSON") from error
    return msgspec.convert(values, Entry)


def _place(verdict: Finding) -> str | None:
    culprit = verdict.culprit
    return f"{culprit.function} {culprit.file}:{culprit.line}" if culprit else None
