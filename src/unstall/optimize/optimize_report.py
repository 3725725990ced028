"""From what the search found to the Report of kind ``optimize``, with the remedies, the total and the patch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from unstall.optimize.patch.apply import remarks
from unstall.optimize.patch.diff import unified
from unstall.optimize.program import Program
from unstall.optimize.result import Result
from unstall.records.remedies import SAMENESS_MEANS, TriedRemedy
from unstall.records.report import Report
from unstall.text.sanitize import sanitize_line


@dataclass(frozen=True)
class SearchOutcome:
    """The report of a search, and what goes with it."""

    report: Report
    patch: bytes
    """The patch for ``git apply``; empty when nothing is changed in the source."""
    patch_remarks: tuple[str, ...]
    """What a person should know before they apply the patch, a line each."""


def header(remedies: Sequence[TriedRemedy]) -> bytes:
    """Lines before the diff, which git and patch pass over: each kept change, and how the same it computes."""
    lines = [
        f"# {sanitize_line(remedy.name)}: {remedy.sameness}, {SAMENESS_MEANS[remedy.sameness]}"
        if remedy.sameness
        else f"# {sanitize_line(remedy.name)}: it changes the training"
        for remedy in remedies
        if remedy.kept
    ]
    return "".join(f"{line}\n" for line in lines).encode(errors="replace")


def conclude(program: Program, result: Result, *, run_id: str) -> SearchOutcome:
    """The outcome of a search; figures of the run are those of the program as it was."""
    remedies = [attempt.record() for attempt in result.attempts]
    patch = unified(result.best.sources, program.folder_of)
    patch = header(remedies) + patch if patch else b""
    remarked = tuple(remarks(program, result.best.sources))
    first = result.first.report
    report = msgspec.structs.replace(
        first,
        kind="optimize",
        run=msgspec.structs.replace(first.run, id=run_id, notes=[*result.notes, *remarked]),
        remedies=remedies,
        total_speedup=result.total.value if result.total else None,
        total_ci95=(result.total.low, result.total.high) if result.total else None,
        patch=patch.decode(errors="replace") or None,
    )
    return SearchOutcome(report, patch, remarked)
