"""``unstall run``: run a program as it is, and say what stalls it."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from unstall.benchmark import launcher, signals
from unstall.cli import options
from unstall.cli.exits import Exit, needs_extra, warn
from unstall.cli.outputs import Outputs, ignore_broken_pipe, need_folders, show
from unstall.cli.parsers import TIME
from unstall.report.progress import Progress
from unstall.runs import gather, record
from unstall.runs.errors import Refused
from unstall.runs.workplace import NoPlace

if TYPE_CHECKING:
    from unstall.benchmark.session import Session
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
        _diagnose(ended, outputs, ledger, {"chrome": chrome, "tensorboard": tensorboard})
    _end_like(ended.outcome)


def _nodes(wanted: launcher.RecordingOptions) -> contextlib.AbstractContextManager[Nodes]:
    from unstall.runs.ray_nodes import open_nodes

    return open_nodes(wanted, warn)


def _run(request: record.RunRequest) -> record.EndedProgram:
    try:
        with Progress() as progress:
            ended = record.run(request, lambda session: _update(progress, session))
    except NoPlace as error:
        warn(f"{error}; the program runs as it is, and there is no report")
        record.run_unrecorded(request)
    signals.ignore_messages()
    return ended


def _diagnose(
    ended: record.EndedProgram, outputs: Outputs, ledger: str | None, exported: dict[str, Path | None]
) -> None:
    try:
        recorded = record.diagnose(ended)
        _export(exported, recorded)
        _report(recorded, outputs, ledger)
    except Exception as error:
        # The program is done; whatever goes wrong in the report must not hide how it ended.
        warn(f"the report could not be made: {type(error).__name__}: {error}")
        _keep_traceback(ended.directory.path)
        warn(f"the recording is kept in {ended.directory.path}, with the traceback; please report this")


def _keep_traceback(folder: Path) -> None:
    """Lay the traceback of the current exception beside the recording, for whoever is to mend it."""
    with contextlib.suppress(OSError):
        (folder / "traceback.txt").write_text(traceback.format_exc(), encoding="utf-8")


def _update(progress: Progress, session: Session) -> None:
    sampling = session.sampler is not None and session.sampler.process_pid is not None
    progress.update("sampling stacks" if sampling else "watching", session.steps, session.rate)


def _export(targets: dict[str, Path | None], recorded: record.RecordedRun) -> None:
    """Write the run in other formats, as ``unstall export`` does; the spans exist only now."""
    from unstall import exports

    for name, target in targets.items():
        if target is not None:
            exporter = exports.exporters()[name]
            source = record.spans(recorded) if "spans" in exporter.takes else recorded.archive
            try:
                exports.export(exporter, source, str(target))
            except exports.ExportError as error:
                warn(f"cannot write {target}: {error}")


def _report(recorded: record.RecordedRun, outputs: Outputs, ledger: str | None) -> None:
    """Write, keep and show the report; on stderr, so that the program's stdout, piped or not, stays its own."""
    from unstall.report import run_view

    if recorded.gathered.elsewhere is not None:
        record.keep(recorded)
        return warn(f"this node's part is left; the report of all nodes will be {recorded.gathered.elsewhere}")
    record.share(recorded)
    outputs.write(run_view, recorded.report, archive=recorded.archive)
    problem = record.keep(recorded)
    show(run_view, recorded.report, stderr=True)
    with ignore_broken_pipe(sys.stderr):
        for line in run_view.memory_lines(recorded.memory):
            click.echo(line, err=True)
    for line in filter(None, [problem, record.enter(recorded, ledger)]):
        warn(line)


def _end_like(outcome: launcher.ProgramExit) -> NoReturn:
    if outcome.observation.stopped:
        raise click.exceptions.Exit(Exit.OK)
    if outcome.status < 0:
        launcher.die_of(-outcome.status)
    raise click.exceptions.Exit(outcome.status)
