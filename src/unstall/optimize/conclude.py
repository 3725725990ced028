"""From what the search found to the Report: kind ``optimize``, with the remedies, the total and the patch."""

from __future__ import annotations

import msgspec

from unstall.optimize.search import Result
from unstall.records.report import Remedy, Report


def report(result: Result, *, run_id: str, patch: bytes, notes: list[str]) -> Report:
    """The report of a search; figures of the run are those of the program as it was.

    Args:
        result: what the search found.
        run_id: under which the report is kept.
        patch: the kept changes as a unified diff; empty if there are none.
        notes: what the user should know of the search and the patch, one line each.
    """
    first = result.first.report
    text = patch.decode(errors="surrogateescape")
    return msgspec.structs.replace(
        first,
        kind="optimize",
        run=msgspec.structs.replace(first.run, id=run_id, notes=notes),
        remedies=[*result.tried, *_advice(result)],
        total_speedup=result.total.value if result.total else None,
        patch=text.encode(errors="replace").decode() or None,
    )


def _advice(result: Result) -> list[Remedy]:
    """What is only told, with its predicted gain."""
    return [
        Remedy(
            name=f"{one.remedy}: {one.title}", exactness=one.exactness, kept=False,
            predicted_speedup=one.predicted, why_not=f"advice: {one.because}", status="advice",
        )
        for one in result.advice
    ]  # fmt: skip
