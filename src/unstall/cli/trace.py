"""``unstall trace``: what GPU traces that somebody has already recorded say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from unstall.cli import options
from unstall.cli.exits import Exit, warn
from unstall.cli.outputs import Outputs, deliver, need_folders
from unstall.report.progress import Progress
from unstall.runs.errors import Refused

_PROGRESS_AFTER_S = 2.0


def _export_kinds() -> list[str]:
    """The formats that events can be written in."""
    from unstall.exports import exporters_of

    return list(exporters_of("timeline"))


@options.command("trace", short_help="Read GPU traces and report what stalls the device.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--what-if",
    "what_ifs",
    multiple=True,
    metavar="X",
    help="Predict a change: launch=0, sync=0, data=0, nccl=0.5x, aten::mm=0.5x.",
)
@click.option("--compare", is_flag=True, help="Compare two traces, before and after.")
@click.option(
    "--export",
    "kind",
    metavar="KIND",
    cls=options.ListingOption,
    names=_export_kinds,
    help="Write the events in another format: {}.",
)
@options.file("--output", help="Where to write the export.")
@options.outputs(html=True)
def verb(
    files: Sequence[Path],
    what_ifs: Sequence[str],
    compare: bool,
    kind: str | None,
    output: Path | None,
    outputs: Outputs,
) -> int:
    """Read GPU traces: what stalls the device, which code is to blame, and what a fix would gain.

    FILE is a torch.profiler trace or an Nsight Systems export; give all ranks of a run.
    """
    _check(files, what_ifs, compare, kind, output, outputs)
    with Progress(after_s=_PROGRESS_AFTER_S) as progress:
        if kind and output:
            return _export(files[0], kind, output, progress)
        if compare:
            return _compare(files, outputs, progress)
        return _diagnose(files, what_ifs, outputs, progress)


def _check(
    files: Sequence[Path],
    what_ifs: Sequence[str],
    compare: bool,
    kind: str | None,
    output: Path | None,
    outputs: Outputs,
) -> None:
    """Raises Refused for files that are none, and for options that another one would leave without effect."""
    if (kind is None) != (output is None):
        raise Refused("--export KIND and --output FILE go together")
    if kind and kind not in _export_kinds():
        raise Refused(f"no export format {kind!r}; choose from {', '.join(_export_kinds())}")
    need_folders(output)
    for file in files:
        if not file.is_file():
            raise Refused(f"{file}: {'is a folder' if file.is_dir() else 'no such file'}")
    if kind and len(files) != 1:
        raise Refused("--export takes one file at a time")
    if compare and len(files) != 2:
        raise Refused(f"--compare takes two files, before and after; you gave {len(files)}")
    outputs_asked = {
        "--compare": compare, "--what-if": bool(what_ifs), "--html": outputs.html, "--markdown": outputs.markdown,
        "--json": outputs.json,
    }  # fmt: skip
    goal = "--export" if kind else "--compare" if compare else ""
    allowed = {"--export": (), "--compare": ("--compare", "--json", "--markdown"), "": tuple(outputs_asked)}[goal]
    for option, value in outputs_asked.items():
        if value and option not in allowed:
            raise Refused(f"{option} cannot be combined with {goal}: run them one after the other")


def _diagnose(files: Sequence[Path], what_ifs: Sequence[str], outputs: Outputs, progress: Progress) -> Exit:
    from unstall.records.archive import Archive
    from unstall.report import trace_view
    from unstall.runs import trace

    report, problems = trace.diagnose(files, what_ifs, progress)
    _warn(problems, progress)
    return deliver(trace_view, report, outputs, archive=Archive(report=report))


def _compare(files: Sequence[Path], outputs: Outputs, progress: Progress) -> Exit:
    from unstall.report import trace_compare_view
    from unstall.runs import trace

    comparison, problems = trace.compare(files[0], files[1], progress)
    _warn(problems, progress)
    return deliver(trace_compare_view, comparison, outputs)


def _export(file: Path, kind: str, output: Path, progress: Progress) -> Exit:
    from unstall import exports
    from unstall.runs import trace

    timeline, problems = trace.read_first(file, progress)
    _warn(problems, progress)
    try:
        exports.export(exports.exporters()[kind], timeline, str(output))
    except exports.ExportError as error:
        raise Refused(f"cannot write {output}: {error}") from error
    click.echo(f"wrote {output}", err=True)
    return Exit.OK


def _warn(problems: Sequence[str], progress: Progress) -> None:
    progress.clear()
    for line in problems:
        warn(line)
