"""``unstall simplify``: find each component's ceiling by experiments on throw-away runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from unstall.benchmark import archive, command, launcher
from unstall.benchmark.signals import Signals
from unstall.records.archive import Archive
from unstall.repeat import ledger as ledgers
from unstall.runs import directory
from unstall.runs.errors import Interrupted, refusing
from unstall.runs.sandboxed import SandboxChoice, opened
from unstall.simplify import laboratory
from unstall.simplify.conclude import conclude
from unstall.simplify.study import Findings, Study

if TYPE_CHECKING:
    from unstall.benchmark.rundir import RunDir
    from unstall.records.report import Report
    from unstall.runs.progress import Progress
    from unstall.sandbox import Sandbox
    from unstall.simplify.trial import Trial


@dataclass(frozen=True)
class Simplified:
    """What the experiments found."""

    report: Report
    archive: Archive
    """The first run, with this report."""
    interrupted: bool
    """Whether a signal ended the experiments; what was found by then is all there is."""
    problem: str | None
    """Why it could not be kept, if so."""


def simplify(
    words: Sequence[str],
    trials: Sequence[Trial],
    *,
    budget_s: float,
    sandbox: SandboxChoice,
    ledger: str | None,
    progress: Progress,
) -> Simplified:
    """Observe the program, then try what was asked for, or what observation gives cause for.

    The report and its first run are kept for the commands that come after, and entered in the ledger.

    Raises:
        Refused: there is nothing to start, no sandbox, or no place for the recording.
        Interrupted: a signal came before there was anything to report.
    """
    with refusing(command.CommandError):
        line = command.resolve(words)
    place = directory.make()
    try:
        report, findings = _study(line, words, place, trials, budget_s, sandbox, progress)
        first = archive.make(report, findings.measured, findings.seen) if findings.seen else Archive(report=report)
        problem = ledgers.keep(report, ledger)
        if problem is None and findings.seen is not None:
            problem = _keep_first_run(place, first)
        return Simplified(report, first, findings.interrupted, problem)
    except laboratory.Interrupted as error:
        raise Interrupted("nothing of the program's was changed") from error
    finally:
        _discard(place)


def _study(
    line: list[str],
    words: Sequence[str],
    place: RunDir,
    trials: Sequence[Trial],
    budget_s: float,
    choice: SandboxChoice,
    progress: Progress,
) -> tuple[Report, Findings]:
    """The report, and what it was made from."""
    with launcher.adopting_orphans(), Signals() as signals, opened(choice, place.path) as sandbox:
        waiter = _Waiter(signals, progress, budget_s)
        study = Study(line, list(words), place, sandbox, waiter.wait, waiter.set_activity, budget_s)
        try:
            findings = study.run(list(trials))
        except OSError as error:
            raise directory.cannot_start(line, error) from error
        report = conclude(findings, sandbox.note)
        notes = [*report.run.notes, *_notes(findings, sandbox)]
        return msgspec.structs.replace(report, run=msgspec.structs.replace(report.run, notes=notes)), findings


class _Waiter:
    """Sleeps between two looks at the program, keeps the progress line going, and raises on a signal."""

    def __init__(self, signals: Signals, progress: Progress, budget_s: float):
        self.signals, self.progress = signals, progress
        self.deadline = time.monotonic() + budget_s
        self.activity = ""

    def set_activity(self, activity: str) -> None:
        self.activity = activity

    def wait(self, seconds: float) -> None:
        self.signals.wait(seconds)
        if self.signals.seen:
            raise laboratory.Interrupted
        left = max(0, round(self.deadline - time.monotonic()))
        self.progress.update(f"{self.activity} · {left // 60}:{left % 60:02d} left")


def _notes(findings: Findings, sandbox: Sandbox) -> list[str]:
    """What the user should know of how the experiments ran."""
    notes = [f"not sent to the network: {request}" for request in sandbox.refused()]
    if findings.measurement is None and findings.output is not None:
        last_lines = findings.output.read_text(errors="replace").strip().splitlines()[-1:]
        notes += [f"the program's last line of output: {line.strip()}" for line in last_lines]
    return notes


def _keep_first_run(place: RunDir, first: Archive) -> str | None:
    try:
        archive.write(place.path / archive.FILE_NAME, first)
    except OSError as error:
        return f"the first run could not be kept: {error.strerror or error}"
    return None


def _discard(place: RunDir) -> None:
    """Remove the recordings of all runs; what is left of the directory is the report's."""
    for folder in place.path.glob("*/"):
        shutil.rmtree(folder, ignore_errors=True)
    place.discard_recordings()
