"""From what the search found to the Report: kind ``optimize``, with the remedies, the total and the patch."""

from __future__ import annotations

import msgspec

from unstall.optimize.patch import unified
from unstall.optimize.patch.place import remarks
from unstall.optimize.program import Program
from unstall.optimize.search import Result
from unstall.records.report import Remedy, Report


def report(program: Program, result: Result) -> Report:
    """The report of a search; figures of the run are those of the program as it was."""
    patch = unified(result.best.sources, program.root).decode(errors="surrogateescape")
    made = result.first.report.with_run(notes=[*result.notes, *remarks(program, result.best.sources)])
    return msgspec.structs.replace(
        made,
        kind="optimize",
        remedies=[*(attempt.record() for attempt in result.tried), *_advice(result)],
        total_speedup=result.total.value if result.total else None,
        patch=patch.encode(errors="replace").decode() or None,
    )


def _advice(result: Result) -> list[Remedy]:
    """What is only told, with its predicted gain."""
    return [
        Remedy(
            name=f"{one.remedy}: {one.title}", exactness=one.exactness, kept=False,
            predicted_speedup=one.predicted, why_not=f"advice: {one.because}",
        )
        for one in result.advice
    ]  # fmt: skip
