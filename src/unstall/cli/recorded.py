"""From a recording to what a person reads: diagnosed, written, kept and shown, for the verbs that record a program."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from unstall.cli.exits import warn
from unstall.cli.outputs import Outputs, ignore_broken_pipe, show
from unstall.report.progress import Progress
from unstall.runs import record

if TYPE_CHECKING:
    from unstall.benchmark.session import Session


def deliver_recording(
    ended: record.EndedProgram,
    outputs: Outputs,
    ledger: str | None = None,
    exported: Mapping[str, Path | None] = MappingProxyType({}),
    *,
    stderr: bool = False,
) -> bool:
    """Diagnose what was recorded, write it, keep it and show it; whether that worked: what fails is said in a line.

    Args:
        ended: the recording.
        outputs: the files that were asked for.
        ledger: where to enter the run, if not in the project's own.
        exported: the file for each exporter that was asked for.
        stderr: where a program ran, whose stdout, piped or not, is its own.
    """
    try:
        recorded = record.diagnose(ended)
        _export(exported, recorded)
        _report(recorded, outputs, ledger, stderr=stderr)
    except Exception as error:
        # The program is done; whatever goes wrong in the report must not hide how it ended.
        warn(f"the report could not be made: {type(error).__name__}: {error}")
        _keep_traceback(ended.directory.path)
        warn(f"the recording is kept in {ended.directory.path}, with the traceback; please report this")
        return False
    return True


def show_progress(progress: Progress, session: Session) -> None:
    """What is done at the moment, and the steps so far."""
    sampling = session.sampler is not None and session.sampler.process_pid is not None
    progress.update("sampling stacks" if sampling else "watching", session.steps, session.rate)


def _keep_traceback(folder: Path) -> None:
    """Lay the traceback of the current exception beside the recording, for whoever is to mend it."""
    with contextlib.suppress(OSError):
        (folder / "traceback.txt").write_text(traceback.format_exc(), encoding="utf-8")


def _export(targets: Mapping[str, Path | None], recorded: record.RecordedRun) -> None:
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


def _report(recorded: record.RecordedRun, outputs: Outputs, ledger: str | None, *, stderr: bool) -> None:
    from unstall.report import run_view

    if recorded.gathered.elsewhere is not None:
        record.keep(recorded)
        return warn(f"this node's part is left; the report of all nodes will be {recorded.gathered.elsewhere}")
    record.share(recorded)
    outputs.write(run_view, recorded.report, archive=recorded.archive)
    problem = record.keep(recorded)
    if stderr or not outputs.take_stdout:
        show(run_view, recorded.report, stderr=stderr)
    with ignore_broken_pipe(sys.stderr):
        for line in run_view.memory_lines(recorded.memory):
            click.echo(line, err=True)
    for line in filter(None, [problem, record.enter(recorded, ledger)]):
        warn(line)
