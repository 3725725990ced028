"""After the program has ended: read, measure, diagnose, and write everything that was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from unstall.benchmark.launcher import Outcome
from unstall.benchmark.rundir import RunDir
from unstall.cli.ending import whoever_reads
from unstall.diagnose.run_report import make_report
from unstall.records.report import Report
from unstall.records.vocabulary import PHASES
from unstall.repeat import revision
from unstall.repeat.revision import Revision
from unstall.report import terminal

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured
    from unstall.benchmark.reader import ProcessRecording

_WIDTH = 100


@dataclass
class Wanted:
    """What to write beside the terminal report."""

    json: Path | None = None
    markdown: Path | None = None
    trace: Path | None = None
    tensorboard: Path | None = None
    modules: bool = False
    ledger: str | None = None
    """A path or URL; the working directory's own if not given."""
    tools: list[str] = field(default_factory=list)


def conclude(
    wanted: Wanted, words: list[str], directory: RunDir, started: datetime, outcome: Outcome, steps: int | None
) -> None:
    """Make the report of a run that has ended, show it on stderr, and write the files that were asked for."""
    found = make_report(words, directory, started, outcome, steps=steps, modules=wanted.modules)
    made, measured = found.report, found.measured
    code = revision.of(Path.cwd())
    if code.dirty:
        made = made.with_run(environment={**made.run.environment, "git_changes": code.changes})
    lines = _tool_lines(directory, wanted.tools)
    for path, write in _writers(wanted, made, measured, found.recordings):
        try:
            write(path)
        except (OSError, RuntimeError) as error:
            print(f"unstall: {path} was not written: {error}", file=sys.stderr)
    _keep(made, measured, directory, outcome)
    _show(made, lines)
    directory.discard_recordings()
    _enter(made, directory, code, wanted.ledger)


def _keep(made: Report, measured: Measured | None, directory: RunDir, outcome: Outcome) -> None:
    """Keep the run for the steps that come after. The report is told, whether or not there is room for this."""
    from unstall.benchmark import archive
    from unstall.diagnose.source_excerpt import of_report

    try:
        (directory.path / archive.REPORT_NAME).write_bytes(made.to_json())
        archive.write(
            directory.path / archive.FILE_NAME, archive.make(made, measured, outcome.observation, of_report(made))
        )
    except OSError as error:
        print(f"unstall: this run could not be kept: {error.strerror or error}", file=sys.stderr)


def _enter(made: Report, directory: RunDir, code: Revision, where: str | None) -> None:
    """Enter the run in the ledger. That may fail: a disk may be full, a server away."""
    from unstall.repeat import ledger
    from unstall.repeat.database import LedgerError

    try:
        ledger.record(made, directory.path, where, code=code)
    except LedgerError as error:
        print(f"unstall: this run is not in the history: {error}", file=sys.stderr)


def _show(made: Report, lines: list[str]) -> None:
    """On stderr, so that the program's stdout, piped or not, stays its own."""
    terminal_width = _WIDTH if not sys.stderr.isatty() else None
    console = Console(stderr=True, width=terminal_width, soft_wrap=False)
    with whoever_reads(sys.stderr):
        terminal.render(made, console)
        for line in lines:
            print(line, file=sys.stderr)


def _writers(
    wanted: Wanted, made: Report, measured: Measured | None, processes: list[ProcessRecording]
) -> Iterator[tuple[Path, Any]]:
    if wanted.json:
        yield wanted.json, lambda path: path.write_bytes(made.to_json())
    if wanted.markdown:
        from unstall.report import markdown

        yield wanted.markdown, lambda path: path.write_text(markdown.render(made), encoding="utf-8")
    if wanted.trace:
        from unstall.report import chrome

        names = {process.pid: _process_name(process) for process in processes}
        yield wanted.trace, lambda path: chrome.write(_spans(processes), names, path)
    if wanted.tensorboard:
        from unstall.report import tensorboard

        durations = measured.loop.durations[measured.chosen].tolist() if measured else []
        yield (
            wanted.tensorboard,
            lambda path: tensorboard.write(made, list(enumerate(durations)), path),
        )


def _spans(processes: list[ProcessRecording]) -> Iterator[tuple[str, str, float, float, int, int]]:
    for process in processes:
        for thread in sorted({int(number) for number in process.spans["thread"]}):
            spans = process.spans[process.spans["thread"] == thread]
            for span, phase in zip(spans, process.phase_indices(spans)):
                name = process.names.get(int(span["name"]), "?").lstrip("~")
                category = PHASES[phase] if phase < len(PHASES) else "span"
                yield name, category, span["start"] / 1e9, span["dur"] / 1e9, process.pid, thread


def _process_name(process: ProcessRecording) -> str:
    fact = process.first("process") or {}
    if "rank" in fact:
        return f"rank {fact['rank']}"
    return "loader worker" if "~data.fetch" in process.ids and not len(process.named("~forward")) else "main"


def _tool_lines(directory: RunDir, tools: list[str]) -> list[str]:
    """What the tools asked for have left, and what memray found."""
    lines = []
    for path in sorted(directory.path.iterdir()):
        if path.suffix in (".pstats", ".html", ".txt", ".pyisession") and path.name != "bootstrap-error.txt":
            lines.append(f"  wrote {os.path.relpath(path)}")
        elif path.suffix == ".error":
            lines.append(f"  {path.stem}: {path.read_text().strip()}")
    if "memray" in tools:
        from unstall.benchmark import memory

        for path in sorted(directory.path.glob("memray-*.bin")):
            lines += _memory_lines(memory.allocating_lines(path))
            lines.append(f"  wrote {os.path.relpath(path)} (memray flamegraph reads it)")
    return lines


def _memory_lines(found: Any) -> list[str]:
    from unstall.report.wording import location
    from unstall.text import units

    lines = []
    for title, group in (
        ("memory at its peak", found.peak),
        ("memory that is never freed", found.growth),
    ):
        if group:
            lines.append(f"  {title}, by the line that allocates it:")
            lines += [
                f"    {units.bytes_(one.bytes):>9}  {one.function}  {location(one.file, one.line)}" for one in group[:3]
            ]
    return lines
