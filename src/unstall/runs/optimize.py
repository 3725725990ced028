"""``unstall optimize``: try the remedies, keep what is faster and computes the same, make a patch of it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark import command, rundir
from unstall.optimize import program, remedies_file
from unstall.optimize.comparison import TrialFailed
from unstall.optimize.optimize_report import conclude
from unstall.optimize.patch import place
from unstall.optimize.search import Options, Result, search
from unstall.optimize.trial_runner import TrialRunner
from unstall.repeat import ledger as ledgers
from unstall.runs.errors import Failed, refusing
from unstall.runs.workplace import SandboxChoice, open_sandbox
from unstall.sandbox import leftovers

if TYPE_CHECKING:
    from unstall.optimize.source.files import Sources
    from unstall.records.report import Report
    from unstall.report.progress import Progress

__all__ = ["Optimized", "Options", "apply", "optimize"]

_FOLDER = "unstall-optimize-"
_NOTABLE_CORES = 0.3
_WHY_STOPPED = {
    "nothing left": "no remedy left that promises enough",
    "budget": "the budget is spent",
    "interrupted": "interrupted",
}


@dataclass(frozen=True)
class Optimized:
    """What the search found, and what can be made of it."""

    report: Report
    patch: bytes
    """The kept changes as a unified diff; empty if there are none."""
    remedies: bytes
    """The kept remedies that can be set at run time, as TOML."""
    root: Path
    """Where the patch applies."""
    interval: tuple[float, float] | None
    """Of the total speed-up, 95 %."""
    remarks: list[str]
    """How the search ended and where the program stands now, a line each."""
    interrupted: bool
    """Whether a signal ended the search; what was found by then is all there is."""
    problem: str | None
    """Why the report could not be kept, if so."""
    sources: Sources

    @property
    def changed_files(self) -> list[Path]:
        """The files that the patch changes."""
        return [path for path, _, _ in self.sources.differing()]


def optimize(
    words: Sequence[str], options: Options, *, sandbox: SandboxChoice, ledger: str | None, progress: Progress
) -> Optimized:
    """Search one program; the report is kept for the commands that come after, and entered in the ledger.

    Raises:
        Refused: there is nothing to start, or no sandbox.
        Failed: a run of the original gave nothing to optimize.
    """
    with refusing(command.CommandError):
        target = program.find(words)
    leftovers.remove_abandoned([Path(tempfile.gettempdir())], _FOLDER)
    try:
        with (
            leftovers.claimed(lambda: Path(tempfile.mkdtemp(prefix=_FOLDER))) as folder,
            open_sandbox(sandbox, folder, progress.log) as box,
        ):
            result = search(target, TrialRunner(target.line, folder, box), options, progress.log)
            result.notes += [*(f"refused in the trials: {line}" for line in box.refused()), *box.limits, *box.reached()]
    except TrialFailed as error:
        raise Failed(str(error)) from error
    outcome = conclude(target, result, run_id=rundir.new_id())
    return Optimized(
        report=outcome.report,
        patch=outcome.patch,
        remedies=remedies_file.written(result.kept).encode(),
        root=target.root,
        interval=(result.total.low, result.total.high) if result.total else None,
        remarks=[f"stopped: {_WHY_STOPPED[result.stopped_by]}", *_standing(result), *outcome.patch_remarks],
        interrupted=result.stopped_by == "interrupted",
        problem=ledgers.keep(outcome.report, ledger),
        sources=result.best.sources,
    )


def apply(optimized: Optimized) -> list[tuple[Path, Path]]:
    """Change the files in their places: each with the backup that was made of it. Raises OSError."""
    return place.apply(optimized.sources)


def _standing(result: Result) -> list[str]:
    """What makes the figures less certain, what stalls the program now, and how far it is from its ceiling."""
    lines = []
    if result.total and result.needs_revisits:
        lines.append("the speed-up holds from the second epoch on; the first one still fills the cache")
    load = max(result.other_cores, default=0.0)
    if load > _NOTABLE_CORES:
        lines.append(
            f"other programs took up to {load:.1f} cores meanwhile: on a quiet machine the intervals are narrower"
        )
    if not result.reproducible:
        lines.append("two runs of the original differ under one seed: exact was judged by that difference")
    verdict = result.last.report.verdict
    if result.kept and verdict.pattern != "healthy":
        culprit = verdict.culprit
        place_of = f", {culprit.function} ({Path(culprit.file).name}:{culprit.line})" if culprit else ""
        lines.append(f"what leads now: {verdict.pattern}{place_of}; without it another {verdict.headroom:.2g}×")
    return lines
