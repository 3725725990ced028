"""`unstall run`: run a program as it is, and tell what stalls it."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unstall import environment
from unstall.benchmark import command, launcher, rundir
from unstall.cli.ending import fail, need_folders
from unstall.report.progress import Progress

if TYPE_CHECKING:
    from unstall.benchmark.session import Session


def run(
    words: list[str] = typer.Argument(
        None,
        metavar="PROGRAM [ARGS]...",
        help="A script, `-m module`, or after `--` any command (torchrun ...).",
    ),
    steps: int | None = typer.Option(None, "--steps", min=1, help="Stop after this many measured steps."),
    json: Path | None = typer.Option(None, "--json", help="Write the report as JSON (schema unstall/2)."),
    markdown: Path | None = typer.Option(None, "--markdown", help="Write the report as Markdown."),
    modules: bool = typer.Option(False, "--modules", help="Show the forward time of each module."),
    memory: bool = typer.Option(False, "--memory", help="Name the lines that allocate (memray; slower)."),
    cprofile: bool = typer.Option(False, "--cprofile", help="Also profile with cProfile (slower)."),
    pyinstrument: bool = typer.Option(False, "--pyinstrument", help="Also profile with pyinstrument (slower)."),
    nvtx: bool = typer.Option(False, "--nvtx", help="NVTX ranges for Nsight Systems."),
    tensorboard: Path | None = typer.Option(None, "--tensorboard", help="Write scalars into this folder."),
    trace: Path | None = typer.Option(None, "--trace", help="Write the spans for ui.perfetto.dev (.json, .json.gz)."),
    ledger: str | None = typer.Option(
        None, "--ledger", envvar=environment.LEDGER, help="Keep the history there: a file, or postgresql://..."
    ),
    gpu_window: int = typer.Option(
        5, "--gpu-window", min=0, metavar="N", help="Record N steps of the GPU's work after warm-up; 0 for none."
    ),
    with_file: Path | None = typer.Option(None, "--with", help="Set the remedies of this file at run time."),
    sampling: bool = typer.Option(
        True, "--sampling/--no-sampling", help="Stack samples by py-spy: they name the culprit."
    ),
) -> None:
    """Run a program as it is and say what stalls it, where, how much faster it could get, and what to do."""
    try:
        line = command.resolve(words or [])
    except command.CommandError as error:
        fail(str(error))
    need_folders(json, markdown, trace)
    tools = [
        name
        for name, wanted in (
            ("memray", memory),
            ("cprofile", cprofile),
            ("pyinstrument", pyinstrument),
        )
        if wanted
    ]
    options = launcher.Options(
        steps=steps,
        sampling=sampling,
        nvtx=nvtx,
        tools=tools,
        gpu_window=gpu_window,
        extensions=["unstall.child.gpu_window"] if gpu_window else [],
        settings={"gpu_window": gpu_window},
    )
    if with_file is not None:
        _add_remedies(options, with_file)
    try:
        directory = rundir.make()
    except OSError as error:
        fail(f"no place for the recording: neither working nor temporary directory takes a file ({error.strerror})")
    if directory.note:
        print(f"unstall: {directory.note}", file=sys.stderr)
    started = datetime.now(timezone.utc)
    progress = Progress()
    try:
        outcome = launcher.launch(line, directory.path, options, lambda session: _show(progress, session))
    except OSError as error:
        directory.discard_recordings()
        fail(f"{line[0]} cannot be started: {error.strerror}")
    progress.clear()
    try:
        from unstall.cli.conclude import Wanted, conclude

        conclude(
            Wanted(
                json=json,
                markdown=markdown,
                trace=trace,
                tensorboard=tensorboard,
                modules=modules,
                ledger=ledger,
                tools=tools,
            ),
            [*(words or [])],
            directory,
            started,
            outcome,
            steps,
        )
    except Exception as error:
        # The program is done; whatever goes wrong in the report must not hide how it ended.
        print(
            f"unstall: the report could not be made: {type(error).__name__}: {error}",
            file=sys.stderr,
        )
        print(
            f"unstall: the recording is kept in {directory.path}; please report this",
            file=sys.stderr,
        )
    _end_like(outcome)


def _add_remedies(options: launcher.Options, path: Path) -> None:
    """Have the program's processes set what the file says."""
    from unstall.optimize.remedies_file import RemediesError, read

    try:
        options.settings["settings"] = read(path)
    except RemediesError as error:
        fail(str(error))
    options.extensions.append("unstall.optimize.child.extension")


def _show(progress: Progress, session: Session) -> None:
    sampling = session.sampler is not None and session.sampler.process_pid is not None
    progress.update("sampling stacks" if sampling else "watching", session.steps, session.rate)


def _end_like(outcome: launcher.Outcome) -> None:
    if outcome.observation.stopped:
        raise typer.Exit(0)
    if outcome.status < 0:
        launcher.die_of(-outcome.status)
    raise typer.Exit(outcome.status)
