"""After the program has ended: read, measure, diagnose, and write everything that was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

from unstall.benchmark import command, launcher, machine, rundir
from unstall.benchmark.environment import environment
from unstall.benchmark.launcher import Outcome
from unstall.benchmark.measure import Measured, measure
from unstall.benchmark.reader import ProcessRecording, read_all
from unstall.benchmark.rundir import RunDir
from unstall.diagnose.summary import Run, report
from unstall.records import Report
from unstall.report import terminal

_WIDTH = 100


@dataclass
class Wanted:
    """What to write beside the terminal report."""

    json: Path | None = None
    markdown: Path | None = None
    trace: Path | None = None
    tensorboard: Path | None = None
    modules: bool = False
    tools: list[str] = field(default_factory=list)


def conclude(
    wanted: Wanted, words: list[str], directory: RunDir, started: datetime, outcome: Outcome, steps: int | None
) -> None:
    """Make the report of a run that has ended, show it on stderr, and write the files that were asked for."""
    made, measured, processes = make_report(words, directory, started, outcome, steps=steps, modules=wanted.modules)
    lines = _tool_lines(directory, wanted.tools)
    for path, write in _writers(wanted, made, measured, processes):
        try:
            write(path)
        except (OSError, RuntimeError) as error:
            print(f"unstall: {path} was not written: {error}", file=sys.stderr)
    try:
        (directory.path / "report.json").write_bytes(made.to_json())
    except OSError:
        pass
    _show(made, lines)
    directory.discard_recordings()


def make_report(
    words: list[str],
    directory: RunDir,
    started: datetime,
    outcome: Outcome,
    *,
    steps: int | None = None,
    modules: bool = False,
    since: float = 0.0,
) -> tuple[Report, Measured | None, list[ProcessRecording]]:
    """Read the recordings of a run and diagnose them. ``since``: leave out spans that began before."""
    processes = read_all(directory.path)
    for process in processes:
        process.spans = process.spans[process.spans["start"] >= since * 1e9]
    seen = outcome.observation
    measured = measure(processes, seen, wanted=steps, peak_flops=_peak_flops(processes))
    run = Run(
        id=directory.id,
        command=words,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        exit_code=outcome.status,
        environment=_environment(processes),
        observation=seen,
        notes=_notes(directory, processes, outcome),
        modules=modules,
    )
    return report(run, measured), measured, processes


def run_and_report(words: list[str], *, steps: int | None, sampling: bool) -> Report:
    """Run a command under observation and return its report; nothing is printed or kept."""
    line = command.resolve(words)
    directory = rundir.make()
    started = datetime.now(timezone.utc)
    try:
        options = launcher.Options(steps=steps, sampling=sampling)
        outcome = launcher.launch(line, directory.path, options, lambda session: None)
        return make_report(words, directory, started, outcome, steps=steps)[0]
    finally:
        directory.discard_recordings()


def _show(made: Report, lines: list[str]) -> None:
    """On stderr, so that the program's stdout, piped or not, stays its own."""
    terminal_width = _WIDTH if not sys.stderr.isatty() else None
    console = Console(stderr=True, width=terminal_width, soft_wrap=False)
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
        phases = process.phase_indices(process.spans)
        from unstall.records import PHASES

        for span, phase in zip(process.spans, phases):
            name = process.names.get(int(span["name"]), "?").lstrip("~")
            category = PHASES[phase] if phase < len(PHASES) else "span"
            yield (
                name,
                category,
                span["start"] / 1e9,
                span["dur"] / 1e9,
                process.pid,
                int(span["thread"]),
            )


def _process_name(process: ProcessRecording) -> str:
    fact = process.first("process") or {}
    if "rank" in fact:
        return f"rank {fact['rank']}"
    return "loader worker" if "~data.fetch" in process.ids and not len(process.named("~forward")) else "main"


def _environment(processes: list[ProcessRecording]) -> dict[str, Any]:
    facts = environment()
    for process in processes:
        torch = process.first("torch")
        if torch:
            facts["torch"] = torch["version"]
            facts["torch_threads"] = torch["threads"]
            facts["python"] = (process.first("process") or {}).get("python", facts["python"])
            break
    return facts


def _peak_flops(processes: list[ProcessRecording]) -> float | None:
    """The machine's matmul rate: as `unstall doctor` measured it, or quickly now if it never did."""
    versions = {fact["version"] for process in processes for fact in process.facts.get("torch", [])}
    if not versions:
        return None
    gpus = [name for process in processes for fact in process.facts.get("torch", []) for name in fact.get("cuda", ())]
    if gpus:
        return machine.listed_peak(gpus[0], "bf16")
    found = machine.cached(next(iter(versions)))
    return found.matmul_flops_f32 if found else machine.quick_matmul_flops()


def _notes(
    directory: RunDir,
    processes: list[ProcessRecording],
    outcome: Outcome,
    measured: Measured | None,
) -> list[str]:
    notes = []
    seen = outcome.observation
    if directory.note:
        notes.append(directory.note)
    if outcome.status < 0 and not seen.stopped:
        notes.append(f"the program was ended by signal {-outcome.status}; the report covers what ran until then")
    elif outcome.status and not seen.stopped:
        notes.append(f"the program ended with exit code {outcome.status}; the report covers what ran until then")
    if not processes:
        notes.append(
            "nothing was recorded: no torch and no gymnasium was imported, or not by a Python that can be watched"
        )
        if outcome.status == 1:
            notes.append("if torch is in another Python, name it: unstall run -- python train.py")
    dropped = sum(process.dropped for process in processes)
    if dropped:
        notes.append(f"the disk took no more: the last {dropped} spans are missing")
    for process in processes:
        for fact in process.facts.get("error", []):
            notes.append(f"{fact.get('what')}: {fact.get('error')}")
    if any(not (process.first("process") or {"native": True}).get("native") for process in processes):
        notes.append("the C recorder is not built for the program's Python: the Python one is slower, spans cost more")
    try:
        for line in (directory.path / "bootstrap-error.txt").read_text().splitlines()[:1]:
            notes.append(f"the program could not be watched: {line}")
    except OSError:
        pass
    return list(dict.fromkeys(notes))


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
    from unstall.report import units
    from unstall.report.wording import location

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
