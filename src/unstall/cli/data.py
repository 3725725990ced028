"""`unstall data`: the program's data pipeline alone, stage by stage, without the model."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unstall.benchmark import command, rundir
from unstall.cli.ending import fail, need_folders, write
from unstall.data.examine import examine
from unstall.report.progress import Progress

if TYPE_CHECKING:
    from unstall.benchmark.session import Session
    from unstall.data.examine import Facts
    from unstall.records.archive import Archive

_WIDTH = 100


def data(
    words: list[str] = typer.Argument(None, metavar="PROGRAM [ARGS]...", help="As for `unstall run`."),
    loader: int = typer.Option(1, "--loader", min=1, help="Which of the DataLoaders that it iterates, in order."),
    run: str | None = typer.Option(None, "--run", help="The recorded run that tells what the model takes."),
    budget: float = typer.Option(30.0, "--budget", min=3.0, help="Seconds to measure for, about."),
    json: Path | None = typer.Option(None, "--json", help="Write the result as JSON; - for stdout."),
    sandbox: bool = typer.Option(True, "--sandbox/--no-sandbox", help="Keep the program's files as they are."),
    allow_network_writes: bool = typer.Option(False, "--allow-network-writes", help="Let it send to the network."),
) -> None:
    """Measure a program's data pipeline by itself: each stage alone, then the loader with 0, 1, 2, 4.. workers."""
    need_folders(json)
    try:
        line = command.resolve(words or [])
        kept = _recorded(run, words or [])
        directory = rundir.make()
    except (command.CommandError, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"no place for the recording: {error.strerror}")
    progress = Progress()
    began = time.monotonic()

    def show(session: Session) -> None:
        progress.update(f"measuring the data pipeline, {time.monotonic() - began:.0f} s", session.steps, session.rate)

    try:
        with _place(line, directory.path, sandbox=sandbox, network=allow_network_writes) as (line, environ):
            facts = examine(line, directory.path, budget_s=budget, loader=loader, environ=environ, on_poll=show)
    except RuntimeError as error:
        progress.clear()
        fail(str(error))
    except OSError as error:
        progress.clear()
        fail(f"{line[0]} cannot be started: {error.strerror}")
    finally:
        directory.discard_recordings()
    progress.clear()
    _give(words or [], facts, kept, json)


@contextlib.contextmanager
def _place(line: list[str], directory: Path, *, sandbox: bool, network: bool) -> Iterator[tuple[list[str], Any]]:
    """Where the program runs: the command to start there, and what makes its environment."""
    if not sandbox:
        yield line, None
        return
    from unstall.sandbox import SandboxError, open_sandbox

    try:
        with open_sandbox(Path.cwd(), [directory], network_writes=network) as box:
            yield box.command(line), box.environment
    except SandboxError as error:
        raise RuntimeError(f"{error} (or give --no-sandbox)") from error


def _recorded(run: str | None, words: list[str]) -> Archive | None:
    """The run that was named; else the last one kept here of the same command, if there is one."""
    from unstall.benchmark import archive

    if run is not None:
        return archive.load(run)
    for path in reversed(rundir.kept(finished=True)):
        try:
            found = archive.load(str(path))
        except archive.ArchiveError:
            continue
        if found.report.run.command == words and found.measurement is not None:
            return found
    return None


def _give(words: list[str], facts: Facts, kept: Archive | None, json: Path | None) -> None:
    from rich.console import Console

    from unstall.data.conclude import conclude, model_rate
    from unstall.report import data_view as view

    report = conclude(words, facts, model_items_per_s=model_rate(kept))
    if json is not None and str(json) == "-":
        sys.stdout.write(report.to_json().decode() + "\n")
        return
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    view.page(report, console.width).show(console)
    if json is not None:
        write(json, report.to_json())
