"""``unstall simplify``: find each component's ceiling by experiments on throw-away runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unstall.benchmark import archive, command, launcher
from unstall.benchmark.signals import Signals
from unstall.diagnose.source_excerpt import of_report
from unstall.records.archive import Archive
from unstall.repeat import ledger as ledgers
from unstall.runs.errors import Interrupted, refusing
from unstall.runs.workplace import SandboxChoice, cannot_start, make_directory, open_sandbox
from unstall.simplify import controlled_process
from unstall.simplify.budget import Budget
from unstall.simplify.program_starter import ProgramStarter
from unstall.simplify.simplifier import Simplifier, SimplifyResult
from unstall.simplify.simplify_report import make_report

if TYPE_CHECKING:
    from unstall.benchmark.rundir import RunDir
    from unstall.records.report import Report
    from unstall.report.progress import Progress
    from unstall.sandbox import Sandbox
    from unstall.simplify.experiment import Experiment


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
    experiments: Sequence[Experiment],
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
    directory = make_directory()
    try:
        with (
            launcher.adopting_orphans(),
            Signals() as signals,
            open_sandbox(sandbox, directory.path, progress.log) as box,
        ):
            waiter = _Waiter(signals, progress, Budget(budget_s))
            starter = ProgramStarter(line, list(words), directory, box, waiter.wait)
            try:
                result = Simplifier(starter, waiter.budget, waiter.announce).run(list(experiments))
            except OSError as error:
                raise cannot_start(line, error) from error
            report = make_report(result, box.note, _notes(result, box))
        first = archive.make(report, result.first.measured, result.first.observation, of_report(report))
        problem = ledgers.keep(report, ledger) or _keep_first_run(directory, first)
        return Simplified(report, first, result.interrupted, problem)
    except controlled_process.Interrupted as error:
        raise Interrupted("nothing of the program's was changed") from error
    finally:
        _discard(directory)


class _Waiter:
    """Sleeps between two looks at the program, keeps the progress line going, and raises on a signal."""

    def __init__(self, signals: Signals, progress: Progress, budget: Budget):
        self.signals, self.progress, self.budget = signals, progress, budget
        self.activity = ""

    def announce(self, activity: str) -> None:
        self.activity = activity

    def wait(self, seconds: float) -> None:
        self.signals.wait(seconds)
        if self.signals.end_requests:
            raise controlled_process.Interrupted
        left = max(0, round(self.budget.left))
        self.progress.update(f"{self.activity} · {left // 60}:{left % 60:02d} left")


def _notes(result: SimplifyResult, sandbox: Sandbox) -> list[str]:
    """What the user should know of how the experiments ran."""
    notes = [f"not sent to the network: {request}" for request in sandbox.refused()] + sandbox.reached()
    if result.measurement is None:
        last_lines = result.first.output.read_text(errors="replace").strip().splitlines()[-1:]
        notes += [f"the program's last line of output: {line.strip()}" for line in last_lines]
    return notes


def _keep_first_run(directory: RunDir, first: Archive) -> str | None:
    try:
        archive.write(directory.path / archive.FILE_NAME, first)
    except OSError as error:
        return f"the first run could not be kept: {error.strerror or error}"
    return None


def _discard(directory: RunDir) -> None:
    """Remove the recordings of all runs; what is left of the directory is the report's."""
    for folder in directory.path.glob("*/"):
        shutil.rmtree(folder, ignore_errors=True)
    directory.discard_recordings()
