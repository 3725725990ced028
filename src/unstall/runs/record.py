"""``unstall run``: run a program as it is, diagnose it, and keep what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from unstall.benchmark import command, launcher
from unstall.benchmark.rundir import RunDir
from unstall.child.seams.loader import FETCH
from unstall.child.seams.modules import FORWARD
from unstall.runs.errors import refusing
from unstall.runs.workplace import cannot_start, make_directory

if TYPE_CHECKING:
    from unstall.benchmark.reader import ProcessRecording
    from unstall.benchmark.session import Session
    from unstall.exports import Spans
    from unstall.records.archive import Archive
    from unstall.records.memory import MemoryLines
    from unstall.records.report import Report
    from unstall.repeat.revision import Revision
    from unstall.runs.gather import Gathered, Gathering
    from unstall.runs.ray_nodes import Nodes


@dataclass(frozen=True)
class RunRequest:
    """What ``unstall run`` was asked for."""

    words: Sequence[str]
    options: launcher.RecordingOptions
    """What to record."""
    modules: bool = False
    """Whether the report tells the forward time of each module."""
    remedies: Path | None = None
    """A file of ``unstall optimize --remedies``, to be set at run time."""
    gathering: Gathering | None = None
    """The place where the machines of this run leave their parts; None for a report of this machine alone."""
    nodes: Nodes | None = None
    """The nodes of a Ray cluster on which the program's workers are recorded."""


@dataclass(frozen=True)
class EndedProgram:
    """A program that has run to its end; its recordings are not read yet."""

    request: RunRequest
    directory: RunDir
    started: datetime
    outcome: launcher.ProgramExit


@dataclass(frozen=True)
class RecordedRun:
    """A run with its diagnosis."""

    report: Report
    archive: Archive
    """The run as it is kept."""
    processes: list[ProcessRecording]
    memory: dict[Path, MemoryLines]
    """The recording of each process, and what it says, with ``--memory``."""
    directory: RunDir
    revision: Revision
    gathering: Gathering | None
    gathered: Gathered
    """The place of the report of all machines, if this is not it."""


def run(request: RunRequest, on_poll: Callable[[Session], None]) -> EndedProgram:
    """Run the program to its end; ``on_poll`` is called about ten times a second.

    Raises Refused where there is nothing to start, NoPlace where nothing takes the recording.
    """
    with refusing(command.CommandError):
        line = command.resolve(request.words)
    options = _with_extensions(request)
    directory = make_directory()
    started = datetime.now(timezone.utc)
    try:
        outcome = launcher.launch(line, directory.path, options, on_poll)
    except OSError as error:
        directory.discard_recordings()
        raise cannot_start(line, error) from error
    return EndedProgram(request, directory, started, outcome)


def run_unrecorded(request: RunRequest) -> NoReturn:
    """Become the program, as it is. Raises Refused where there is nothing to start."""
    with refusing(command.CommandError):
        line = command.resolve(request.words)
    try:
        launcher.become(line)
    except OSError as error:
        raise cannot_start(line, error) from error


def _with_extensions(request: RunRequest) -> launcher.RecordingOptions:
    """The options, with what the program's processes import to record GPU work and to set remedies."""
    window = request.options.gpu_window
    extensions = ["unstall.child.gpu_window"] if window else []
    settings: dict[str, Any] = {"gpu_window": window}
    if request.remedies is not None:
        from unstall.optimize.remedies_file import RemediesError, read

        with refusing(RemediesError):
            settings["settings"] = read(request.remedies)
        extensions.append("unstall.child.trial.extension")
    options = replace(request.options, extensions=extensions, settings=settings)
    return request.nodes.recording(options) if request.nodes is not None else options


def diagnose(ended: EndedProgram) -> RecordedRun:
    """Read the recordings of a run that has ended, and say what stalled it."""
    from unstall.benchmark import archive
    from unstall.diagnose.run_report import make_report
    from unstall.diagnose.source_excerpt import of_report
    from unstall.repeat import revision
    from unstall.runs.gather import Gathered

    request, outcome = ended.request, ended.outcome
    steps, modules = request.options.steps, request.modules
    diagnosis = make_report(list(request.words), ended.directory, ended.started, outcome, steps=steps, modules=modules)
    if request.nodes is not None:
        from unstall.runs.ray_nodes import Asked

        asked = Asked(ended.directory.id, list(request.words), ended.started, outcome.status, steps, modules)
        diagnosis = request.nodes.diagnosis(diagnosis, asked)
    gathered = request.gathering.gather(diagnosis) if request.gathering else Gathered(diagnosis)
    diagnosis = gathered.diagnosis
    report = diagnosis.report
    code = revision.of(Path.cwd())
    if code.dirty:
        report = report.with_run(environment={**report.run.environment, "git_changes": code.changes})
    return RecordedRun(
        report=report,
        archive=archive.make(report, diagnosis.measured, diagnosis.run.observation, of_report(report)),
        processes=diagnosis.recordings,
        memory=_memory_lines(ended.directory.path) if request.options.memory else {},
        directory=ended.directory,
        revision=code,
        gathering=request.gathering,
        gathered=gathered,
    )


def keep(run: RecordedRun) -> str | None:
    """Keep the run for the commands that come after; why that failed, if it did. The recordings are discarded."""
    from unstall.benchmark import archive

    folder = run.directory.path
    try:
        (folder / archive.REPORT_NAME).write_bytes(run.report.to_json())
        archive.write(folder / archive.FILE_NAME, run.archive)
    except OSError as error:
        return f"this run could not be kept: {error.strerror or error}"
    finally:
        run.directory.discard_recordings()
    return None


def share(run: RecordedRun) -> None:
    """Leave the report of several machines where the others look for it."""
    gathering, name = run.gathering, run.gathered.report_name
    if gathering is not None and name is not None:
        gathering.put_report(name, run.report.to_json())


def enter(run: RecordedRun, ledger: str | None) -> str | None:
    """Enter the run in the ledger; why that failed, if it did: a disk may be full, a server away."""
    from unstall.repeat import ledger as ledgers
    from unstall.repeat.database import LedgerError

    try:
        ledgers.record(run.report, run.directory.path, ledger, code=run.revision)
    except LedgerError as error:
        return f"this run is not in the history: {error}"
    return None


def spans(run: RecordedRun) -> Spans:
    """Every span that was recorded, for exporters."""
    from unstall.exports import Spans

    return Spans({process.pid: _process_name(process) for process in run.processes}, _spans(run.processes))


def _spans(processes: list[ProcessRecording]) -> Iterator[tuple[str, str, float, float, int, int]]:
    from unstall.benchmark.reader import NO_PHASE
    from unstall.records.vocabulary import label

    for process in processes:
        for thread in sorted({int(number) for number in process.spans["thread"]}):
            spans = process.spans[process.spans["thread"] == thread]
            for span, phase in zip(spans, process.phase_indices(spans)):
                name = label(process.names.get(int(span["name"]), "?"))
                category = "span" if phase == NO_PHASE else process.phase_names[phase]
                yield name, category, span["start"] / 1e9, span["dur"] / 1e9, process.pid, thread


def _process_name(process: ProcessRecording) -> str:
    if process.identity is not None:
        return f"rank {process.rank}"
    return "loader worker" if FETCH.event in process.ids and not len(process.named(FORWARD.event)) else "main"


def _memory_lines(folder: Path) -> dict[Path, MemoryLines]:
    from unstall.benchmark import memory

    return {path: memory.allocating_lines(path) for path in sorted(folder.glob("memray-*.bin"))}
