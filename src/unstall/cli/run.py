"""``unstall run``: run a program as it is, and say what stalls it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from unstall.benchmark import launcher, signals
from unstall.cli import options
from unstall.cli.exits import Exit, needs_extra, warn
from unstall.cli.outputs import Outputs, need_folders
from unstall.cli.parsers import TIME
from unstall.cli.recorded import deliver_recording, show_progress
from unstall.report.progress import Progress
from unstall.runs import gather, record
from unstall.runs.errors import Refused
from unstall.runs.workplace import NoPlace

if TYPE_CHECKING:
    from unstall.runs.ray_nodes import Nodes


@options.program_command("run", short_help="Run a program unchanged and report what stalls it.")
@click.option(
    "--gather", "address", metavar="FOLDER|URL", help="Merge all nodes into one report, through this shared place."
)
@click.option("--gather-wait", type=TIME, default="2m", help="How long to wait for the other nodes.")
@click.option("--ray", is_flag=True, help="Record the program's workers on a running Ray cluster.")
@click.option("--steps", type=click.IntRange(1), metavar="N", help="Stop after N measured steps.")
@options.outputs(html=True)
@options.file("--chrome", "--trace", help="Write the spans as a Chrome trace (.json, .json.gz).")
@click.option("--tensorboard", type=click.Path(path_type=Path), metavar="FOLDER", help="Write TensorBoard scalars.")
@options.ledger
@options.file("--with", "remedies", help="Apply the remedies that `optimize --remedies` wrote.")
@click.option("--gpu-window", type=click.IntRange(0), default=5, metavar="N", help="GPU steps to profile; 0 for none.")
@click.option("--sampling/--no-sampling", default=True, help="Sample stacks: they name the culprit.")
@click.option("--modules", is_flag=True, help="Time the forward pass of each module (slower).")
@click.option("--memory", is_flag=True, help="Find the lines that allocate, with memray (slower).")
@click.option("--nvtx", is_flag=True, help="Mark phases as NVTX ranges for Nsight Systems.")
def verb(
    words: Sequence[str],
    outputs: Outputs,
    chrome: Path | None,
    tensorboard: Path | None,
    ledger: str | None,
    modules: bool,
    address: str | None,
    gather_wait: float,
    ray: bool,
    remedies: Path | None,
    **recording: Any,
) -> None:
    """Run a program unchanged and report what stalls it, where, and the possible speed-up."""
    need_folders(chrome)
    if ray and address is not None:
        raise Refused("--ray brings the parts of all nodes together itself: leave out --gather")
    gathering = None
    if address is not None:
        with needs_extra("gather"):
            gathering = gather.open_gathering(address, gather_wait, warn)
    wanted = launcher.RecordingOptions(**recording)
    with _nodes(wanted) if ray else contextlib.nullcontext() as nodes:
        request = record.RunRequest(words, wanted, modules, remedies, gathering, nodes)
        ended = _run(request)
        deliver_recording(ended, outputs, ledger, {"chrome": chrome, "tensorboard": tensorboard}, stderr=True)
    _end_like(ended.outcome)


def _nodes(wanted: launcher.RecordingOptions) -> contextlib.AbstractContextManager[Nodes]:
    from unstall.runs.ray_nodes import open_nodes

    return open_nodes(wanted, warn)


def _run(request: record.RunRequest) -> record.EndedProgram:
    try:
        with Progress() as progress:
            ended = record.run(request, lambda session: show_progress(progress, session))
    except NoPlace as error:
        warn(f"{error}; the program runs as it is, and there is no report")
        record.run_unrecorded(request)
    signals.ignore_messages()
    return ended


def _end_like(outcome: launcher.ProgramExit) -> NoReturn:
    if outcome.observation.stopped:
        raise click.exceptions.Exit(Exit.OK)
    if outcome.status < 0:
        launcher.die_of(-outcome.status)
    raise click.exceptions.Exit(outcome.status)
