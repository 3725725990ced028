"""``unstall simplify``: find each component's ceiling by experiments on throw-away runs."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.benchmark import archive, command, launcher
from unstall.benchmark.rundir import RunDir
from unstall.benchmark.signals import Signals
from unstall.diagnose.source_excerpt import of_report
from unstall.records.archive import Archive
from unstall.repeat import ledger as ledgers
from unstall.runs.errors import Failed, Interrupted, refusing
from unstall.runs.workplace import SandboxChoice, cannot_start, make_directory, open_sandbox
from unstall.sandbox import leftovers
from unstall.simplify import controlled_process
from unstall.simplify.budget import ExperimentBudget
from unstall.simplify.program_starter import ProgramStarter
from unstall.simplify.simplifier import Simplifier, SimplifyResult
from unstall.simplify.simplify_report import make_report

if TYPE_CHECKING:
    from unstall.records.report import Report
    from unstall.report.progress import Progress
    from unstall.sandbox import Sandbox
    from unstall.simplify.experiment import Experiment, ExperimentResult

_FOLDER = "unstall-simplify-"


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
    on: str | None = None,
) -> Simplified:
    """Observe the program, then try what was asked for, or what observation gives cause for.

    The report and its first run are kept for the commands that come after, and entered in the ledger. ``on``: ``ray``,
    for experiments on a node of a cluster's.

    Raises:
        Refused: there is nothing to start, no sandbox, or no place for the recording.
        Interrupted: a signal came before there was anything to report.
    """
    with refusing(command.CommandError):
        line = command.resolve(words)
    directory = make_directory()
    try:
        with Signals() as signals:
            waiter = _Waiter(signals, progress, ExperimentBudget(budget_s))
            place = _ProgramSetup(line, list(words), directory)
            if on is None:
                with open_starter(place, sandbox, waiter.wait, progress.log) as starter:
                    outcome = experiment(starter, experiments, waiter.budget, waiter.announce)
            else:
                outcome = _on_ray(place, experiments, sandbox, waiter)
            result = outcome.result
            report = make_report(result, outcome.sandbox, outcome.notes)
        first = archive.make(report, result.first.measured, result.first.observation, of_report(report))
        problem = ledgers.keep(report, ledger) or _keep_first_run(directory, first)
        return Simplified(report, first, result.interrupted, problem)
    except controlled_process.StopRequested as error:
        raise Interrupted("none of the program's files was changed") from error
    finally:
        _discard(directory)


@dataclass(frozen=True)
class _ProgramSetup:
    """What to start, what the person wrote, and where its recordings lie."""

    line: list[str]
    words: list[str]
    directory: RunDir


@dataclass(frozen=True)
class _Outcome:
    """What came of the experiments."""

    result: SimplifyResult
    sandbox: str
    """The means of isolation that was in force."""
    notes: list[str]


@contextlib.contextmanager
def open_starter(
    program: _ProgramSetup, sandbox: SandboxChoice, wait: Callable[[float], None], on_message: Callable[[str], None]
) -> Iterator[ProgramStarter]:
    """What starts the program on this machine. Raises Refused where there is no sandbox."""
    with launcher.adopting_orphans(), open_sandbox(sandbox, program.directory.path, on_message) as box:
        yield ProgramStarter(program.line, program.words, program.directory, box, wait)


def experiment(
    starter: ProgramStarter,
    requested: Sequence[Experiment],
    budget: ExperimentBudget,
    announce: Callable[[str], None],
    keep: Callable[[SimplifyResult], None] = lambda simplified: None,
    known: Sequence[ExperimentResult] = (),
) -> _Outcome:
    """Watch, and experiment with what is not known yet. Raises Refused where the program cannot be started."""
    try:
        result = Simplifier(starter, budget, announce, keep).run(list(requested), known)
    except OSError as error:
        raise cannot_start(starter.line, error) from error
    return _Outcome(result, starter.sandbox.note, _notes(result, starter.sandbox))


# ---------------------------------------------------------------- on a Ray cluster


def _on_ray(
    program: _ProgramSetup, requested: Sequence[Experiment], sandbox: SandboxChoice, waiter: _Waiter
) -> _Outcome:
    """Experiment on a node of the cluster; where it is lost, what it found stands, and another one goes on."""
    from unstall.runs.on_ray import NoNode, open_on_ray

    latest: list[SimplifyResult] = []

    def receive(message: Any) -> None:
        if isinstance(message, SimplifyResult):
            latest[:] = [message]
        else:
            waiter.announce(str(message))

    open_there = partial(open_remote_starter, program, sandbox)
    deadline = time.time() + waiter.budget.left  # as the nodes' clocks have it
    with open_on_ray(open_there, waiter.progress.log, receive, waiter.wait) as place:
        try:
            outcome: _Outcome = place.do(_experiment_there, list(requested), deadline, latest)
        except (NoNode, controlled_process.StopRequested) as error:
            if not latest and isinstance(error, NoNode):
                raise Failed(str(error)) from error
            if not latest:
                raise
            outcome = _Outcome(replace(latest[-1], interrupted=True), "", [str(error)] if str(error) else [])
        return replace(outcome, notes=[*outcome.notes, *place.moves])


@contextlib.contextmanager
def open_remote_starter(
    program: _ProgramSetup, sandbox: SandboxChoice, on_message: Callable[[object], None]
) -> Iterator[tuple[ProgramStarter, Callable[[object], None]]]:
    """What starts the program on a node of a cluster's, with recordings there, and where its messages go."""
    leftovers.remove_abandoned([Path(tempfile.gettempdir())], _FOLDER)
    with leftovers.claimed(lambda: Path(tempfile.mkdtemp(prefix=_FOLDER))) as folder:
        there = replace(program, directory=RunDir(program.directory.id, folder, program.directory.note))
        with open_starter(there, sandbox, time.sleep, on_message) as starter:
            yield starter, on_message


def _experiment_there(
    opened: tuple[ProgramStarter, Callable[[object], None]],
    requested: Sequence[Experiment],
    deadline: float,
    latest: Sequence[SimplifyResult],
) -> _Outcome:
    """On the node: experiment until then; ``latest``: what a node that was lost had found, if one was."""
    starter, on_message = opened
    known = latest[-1].results if latest else ()
    return experiment(starter, requested, ExperimentBudget(deadline - time.time()), on_message, on_message, known)


class _Waiter:
    """Sleeps between two looks at the program, keeps the progress line going, and raises on a signal."""

    def __init__(self, signals: Signals, progress: Progress, budget: ExperimentBudget):
        self.signals, self.progress, self.budget = signals, progress, budget
        self.activity = ""

    def announce(self, activity: str) -> None:
        self.activity = activity

    def wait(self, seconds: float) -> None:
        self.signals.wait(seconds)
        if self.signals.end_requests:
            raise controlled_process.StopRequested
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
