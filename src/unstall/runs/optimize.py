"""``unstall optimize``: try the remedies, keep what is faster and computes the same, make a patch of it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark import command, rundir
from unstall.child.user_files import package_of
from unstall.optimize import program, remedies_file
from unstall.optimize.agent import Agent
from unstall.optimize.comparison import TrialFailed
from unstall.optimize.optimize_report import conclude
from unstall.optimize.patch import apply as patching
from unstall.optimize.remedies.base import Exactness
from unstall.optimize.result import Result, SearchOptions
from unstall.optimize.search import search
from unstall.optimize.trial_runner import TrialRunner, Trials
from unstall.records.vocabulary import HEALTHY
from unstall.repeat import ledger as ledgers
from unstall.report import promise
from unstall.runs.errors import Failed, Refused, refusing
from unstall.runs.workplace import SandboxChoice, open_sandbox
from unstall.sandbox import leftovers

if TYPE_CHECKING:
    from unstall.optimize.source.files import Sources
    from unstall.records.report import Report
    from unstall.report.progress import Progress

__all__ = ["Optimized", "SearchOptions", "apply", "optimize"]

_FOLDER = "unstall-optimize-"
_NOTABLE_CORES = 0.3
_REASONS = 8
"""Why cures do not apply, at most so many lines."""
_WHY_STOPPED = {
    "nothing left": "no remedy left with enough predicted gain",
    "first kept": "the first change that pays is kept",
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
    words: Sequence[str],
    options: SearchOptions,
    *,
    packages: Sequence[str] = (),
    sandbox: SandboxChoice,
    ledger: str | None,
    progress: Progress,
    agent: str | None = None,
    on: str | None = None,
) -> Optimized:
    """Search one program; the report is kept for the commands that come after, and entered in the ledger.

    ``packages``: import names of packages that may be changed beside the program's own files. ``agent``: a shell
    command that changes the program's sources, if one is to. ``on``: ``ray``, for trials on a node of a cluster's.

    Raises:
        Refused: there is nothing to start, or no sandbox.
        Failed: a run of the original gave nothing to optimize.
    """
    with refusing(command.CommandError):
        target = program.find(words, packages)
    try:
        if on is None:
            with open_trials(target.line, sandbox, progress.log) as runner:
                author = _author(agent, target, runner, options, progress.log) if agent is not None else None
                result = _searched(target, runner, options, progress.log, author)
        else:
            result = _on_ray(target, options, sandbox, progress.log, agent)
    except TrialFailed as error:
        raise Failed(str(error)) from error
    outcome = conclude(target, result, run_id=rundir.new_id())
    return Optimized(
        report=outcome.report,
        patch=outcome.patch,
        remedies=remedies_file.written(result.kept).encode(),
        root=target.root,
        remarks=[
            f"stopped: {_WHY_STOPPED[result.stopped_by]}",
            *_standing(result),
            *_inapplicable(result),
            *_locked(target, result),
            *outcome.patch_remarks,
        ],
        interrupted=result.stopped_by == "interrupted",
        problem=ledgers.keep(outcome.report, ledger),
        sources=result.best.sources,
    )


@contextlib.contextmanager
def open_trials(
    line: Sequence[str], sandbox: SandboxChoice, on_message: Callable[[str], None]
) -> Iterator[TrialRunner]:
    """A runner of trials on this machine. Raises Refused where there is no sandbox."""
    leftovers.remove_abandoned([Path(tempfile.gettempdir())], _FOLDER)
    with (
        leftovers.claimed(lambda: Path(tempfile.mkdtemp(prefix=_FOLDER))) as folder,
        open_sandbox(sandbox, folder, on_message) as box,
    ):
        runner = TrialRunner(line, folder, box)
        try:
            yield runner
        finally:
            runner.stop_forking()


def apply(optimized: Optimized) -> list[tuple[Path, Path | None]]:
    """Change the files in their places: each with the backup that was made of it, none of a new one. Raises OSError."""
    return patching.apply(optimized.sources)


def _on_ray(
    target: program.Program,
    options: SearchOptions,
    sandbox: SandboxChoice,
    on_message: Callable[[str], None],
    agent: str | None,
) -> Result:
    """Search with trials on a Ray cluster."""
    from unstall.runs.on_ray import open_on_ray

    if agent is not None:
        raise Refused("--agent changes files on this machine: leave out --on ray")
    with open_on_ray(partial(open_trials, target.line, sandbox), on_message) as place:
        result = _searched(target, place, options, on_message, None)
        result.notes += place.moves
    return result


def _inapplicable(result: Result) -> list[str]:
    """Why the cures of the verdict do not apply, where none was kept."""
    if result.kept or not result.inapplicable:
        return []
    pattern = result.last.report.verdict.pattern
    return [
        f"cures of {pattern} that do not apply here:",
        *(f"· {reason}" for reason in result.inapplicable[:_REASONS]),
    ]


def _searched(
    target: program.Program,
    trials: Trials,
    options: SearchOptions,
    on_message: Callable[[str], None],
    author: Agent | None,
) -> Result:
    result = search(target, trials, options, on_message, author)
    with contextlib.suppress(TrialFailed):  # where no node is left to ask
        result.notes += trials.do(_remarks)
    return result


def _remarks(runner: TrialRunner) -> list[str]:
    """What the sandbox held back, and what it could not, a line each."""
    box = runner.sandbox
    return [*(f"refused in the trials: {line}" for line in box.refused()), *box.limits, *box.reached()]


def _author(
    agent: str, target: program.Program, runner: TrialRunner, options: SearchOptions, on_message: Callable[[str], None]
) -> Agent:
    """The command that changes sources. Raises Refused where it could change them for real."""
    if runner.sandbox.force != "overlay":
        raise Refused(f"--agent needs a sandbox with an overlay: {runner.sandbox.note}")
    exactness: Exactness = "reduced" if "reduced" in options.allow else "close"
    return Agent(agent, target, runner, exactness, on_message)


def _locked(target: program.Program, result: Result) -> list[str]:
    """How to let the culprit be changed, where it is in an installed package."""
    culprit = result.last.report.verdict.culprit
    package = package_of(culprit.file) if culprit else ""
    if culprit is None or not package or target.owns(Path(culprit.file)):
        return []
    return [f"{culprit.function} is inside the package {package}: --package {package} lets its source be changed too"]


def _standing(result: Result) -> list[str]:
    """What makes the figures less certain, what stalls the program now, and how far it is from its ceiling."""
    lines = []
    if result.total and result.needs_revisits:
        lines.append(f"the speed-up holds from the second epoch on: {result.cost_of_first_epoch}")
    lines += result.costs_of_start
    load = max(result.other_cores, default=0.0)
    if load > _NOTABLE_CORES:
        lines.append(
            f"other programs took up to {load:.1f} cores meanwhile: on a quiet machine the intervals are narrower"
        )
    if not result.reproducible:
        lines.append("two runs of the original differ under one seed: close allows for that difference too")
    verdict = result.last.report.verdict
    if result.last is not result.first and verdict.pattern != HEALTHY:
        culprit = verdict.culprit
        place_of = f", {culprit.function} ({Path(culprit.file).name}:{culprit.line})" if culprit else ""
        promised = promise.first(verdict)
        lines.append(f"the next bottleneck: {verdict.pattern}{place_of}" + (f"; {promised}" if promised else ""))
    return lines
