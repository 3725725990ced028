"""`unstall trace`: what GPU traces that were recorded already say."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from unstall.cli.ending import fail, need_folders

if TYPE_CHECKING:
    from unstall.report.layout import Page
    from unstall.trace.ranks import Ranks
    from unstall.trace.timeline import Timeline

_WIDTH = 100
_PROGRESS_AFTER_S = 2.0
_PERIOD_S = 0.25
_IN_MEMORY_BYTES = 64 << 20
"""Files of several ranks that are kept in memory together, so that all ranks can be replayed as one."""


def trace(
    files: list[Path] = typer.Argument(
        ...,
        metavar="FILE...",
        help="torch.profiler traces or Nsight Systems exports; all ranks of a run.",
    ),
    json: Path | None = typer.Option(None, "--json", help="Write the report as JSON (schema unstall/1)."),
    html: Path | None = typer.Option(None, "--html", help="Write it as one page for a browser."),
    what_if: list[str] = typer.Option(
        [],
        "--what-if",
        metavar="X",
        help="Predict a change: launch=0, sync=0, data=0, nccl=0.5x, aten::mm=0.5x.",
    ),
    compare: bool = typer.Option(False, "--compare", help="What changed from the first file to the second."),
    export: str | None = typer.Option(None, "--export", metavar="KIND", help="perfetto, chrome, csv or parquet."),
    output: Path | None = typer.Option(None, "--output", help="Where to write the export."),
) -> None:
    """Read GPU traces: what stalls the device, who is to blame, and what a fix would be worth."""
    from unstall.trace.timeline import TraceError

    _check(files, (json, html, output), compare, export, output)
    _check_goals(json, html, what_if, compare, export)
    progress = _Progress()
    try:
        if export is not None and output is not None:
            _export(_read(files, progress), export, output, progress)
        elif compare:
            _compare(files, json, progress)
        else:
            _diagnose(files, what_if, json, html, progress)
    except TraceError as error:
        progress.clear()
        fail(str(error))


def _check(
    files: Sequence[Path], written: Sequence[Path | None], compare: bool, export: str | None, output: Path | None
) -> None:
    for file in files:
        if not file.is_file():
            fail(f"{file}: {'is a folder' if file.is_dir() else 'no such file'}")
    need_folders(*written)
    if compare and len(files) != 2:
        fail(f"--compare takes two files, before and after; there are {len(files)}")
    if (export is None) != (output is None):
        fail("--export KIND and --output FILE go together")
    if export is not None:
        from unstall.exports import exporters_of

        kinds = exporters_of("timeline")
        if export not in kinds:
            fail(f"no export format {export!r}; there are {', '.join(kinds)}")
        if len(files) != 1:
            fail("--export takes one file at a time")


def _check_goals(
    json: Path | None, html: Path | None, what_if: Sequence[str], compare: bool, export: str | None
) -> None:
    """Options that another one would leave without effect are refused, not ignored."""
    given = {"--compare": compare, "--html": html is not None, "--what-if": bool(what_if), "--json": json is not None}
    goal = "--export" if export is not None else "--compare" if compare else ""
    allowed = {"--export": (), "--compare": ("--compare", "--json"), "": tuple(given)}[goal]
    for option, used in given.items():
        if used and option not in allowed:
            fail(f"{option} does not go with {goal}: ask for one after the other")


def _read_ranks(files: Sequence[Path], progress: _Progress) -> Ranks:
    """All ranks in memory where they are small; of large ones little more than figures, until one is asked for."""
    from unstall.trace.ranks import Ranks

    if len(files) == 1 or sum(file.stat().st_size for file in files) <= _IN_MEMORY_BYTES:
        return Ranks.of(_read(files, progress))
    from unstall.trace.readers import read
    from unstall.trace.readers.parallel import read_each
    from unstall.trace.summary import Summary, summarise

    outcomes = read_each(files, summarise, progress=progress.told)
    for outcome in outcomes:
        if outcome.error:
            print(f"unstall: left out: {outcome.error}", file=sys.stderr)
    summaries = [replace(one, part=part) for outcome in outcomes for part, one in enumerate(outcome.results)]
    if not summaries:
        fail("none of the files can be read as a trace")

    def load(summary: Summary) -> Timeline:
        return read(summary.path)[summary.part]

    return Ranks(summaries, load)


def _read(files: Sequence[Path], progress: _Progress) -> list[Timeline]:
    """Of several files, those that can be read; TraceError if there is none."""
    from unstall.trace.readers import read
    from unstall.trace.timeline import TraceError

    timelines: list[Timeline] = []
    errors: list[TraceError] = []
    for number, file in enumerate(files):
        try:
            timelines += read(file, partial(progress.part, number, len(files)))
        except TraceError as error:
            errors.append(error)
    if errors and not timelines:
        raise errors[0]
    for one in errors:
        print(f"unstall: left out: {one}", file=sys.stderr)
    return timelines


class _Progress:
    """A line on a terminal's stderr, from the third second on."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._shown = False

    def part(self, number: int, of: int, share: float) -> None:
        """The share of one of several files that has been read."""
        self.told((number + share) / of)

    def told(self, share: float) -> None:
        """The share of all files that has been read."""
        now = time.monotonic()
        if now - self._began < _PROGRESS_AFTER_S or now - self._last < _PERIOD_S or not sys.stderr.isatty():
            return
        self._last, self._shown = now, True
        print(f"\r\x1b[Kunstall · reading {share:.0%}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the line, if one is shown."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._shown = False


def _diagnose(
    files: Sequence[Path], what_ifs: Sequence[str], json: Path | None, html: Path | None, progress: _Progress
) -> None:
    from unstall.report import trace_view
    from unstall.trace.replay.whatif import parse
    from unstall.trace.report import report

    for text in what_ifs:
        parse(text)  # before a long reading, not after it
    ranks = _read_ranks(files, progress)
    made = report(ranks, [str(file) for file in files], what_ifs=what_ifs)
    progress.clear()
    _write(json, made.to_json())
    if html is not None:
        from unstall.records.archive import Archive
        from unstall.report import html as pages

        _write(html, pages.page(Archive(report=made)).encode())
    _show(trace_view.page(made, _console().width))


def _compare(files: Sequence[Path], json: Path | None, progress: _Progress) -> None:
    import msgspec

    from unstall.report import trace_compare_view
    from unstall.trace.compare import compare

    before, after = (_first(_read([file], progress)) for file in files)
    made = compare(before, after)
    progress.clear()
    _write(json, msgspec.json.format(msgspec.json.encode(made), indent=2))
    _show(trace_compare_view.page(made, _console().width))


def _export(timelines: list[Timeline], kind: str, output: Path, progress: _Progress) -> None:
    from unstall.exports import ExportError, export, exporters

    progress.clear()
    try:
        export(exporters()[kind], _first(timelines), str(output))
    except ExportError as error:
        fail(f"{output} was not written: {error}")
    print(f"wrote {output}", file=sys.stderr)


def _first(timelines: list[Timeline]) -> Timeline:
    """What is compared or written of a file: an export of Nsight may hold several processes."""
    first = timelines[0]
    if len(timelines) > 1:
        rank = "" if first.rank is None else f" (rank {first.rank})"
        print(f"unstall: {first.path} holds {len(timelines)} processes: the first{rank} is taken", file=sys.stderr)
    return first


def _write(path: Path | None, content: bytes) -> None:
    if path is None:
        return
    try:
        path.write_bytes(content)
    except OSError as error:
        fail(f"{path} was not written: {error.strerror}")


def _console() -> Console:
    """On stdout: reading a trace runs no program whose output it could disturb."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH, soft_wrap=False)


def _show(page: Page) -> None:
    page.show(_console())
