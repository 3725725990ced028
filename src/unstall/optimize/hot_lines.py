"""How much of the step a line holds up: stack samples tell the lines apart, the recorder's clock the phases."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import libcst as cst

from unstall.child.user_files import package_of
from unstall.optimize.context import RemedyContext
from unstall.optimize.source.errors import SourceError
from unstall.optimize.source.module import SourceModule
from unstall.optimize.thresholds import LEAST_LINE
from unstall.records.observations import Frame
from unstall.records.report import Hotspot

Part = cst.FunctionDef | cst.Module
"""A function, or the top level of a file."""

_FETCH = "_utils/fetch.py"


def hot_lines(context: RemedyContext) -> Iterator[tuple[Path, int, float]]:
    """(file, line, share of the step) of the user's lines that the samples fell on, as far as they may be changed.

    What a library takes that may not be changed is that of the user's line that leads into it.
    """
    for spot in context.report.hotspots:
        path, line = context.user_file(spot.file), spot.line
        if path is None and spot.called_by is not None:
            path, line = context.user_file(spot.called_by.file), spot.called_by.line
        share = _of_step(context, spot)
        if path is not None and share >= LEAST_LINE:
            yield path, line, share


def hot_files(context: RemedyContext) -> dict[Path, dict[int, float]]:
    """By file: share of the step by line."""
    files: dict[Path, dict[int, float]] = {}
    for path, line, share in hot_lines(context):
        of_line = files.setdefault(path, {})
        of_line[line] = of_line.get(line, 0.0) + share
    return files


def readable(context: RemedyContext, files: Iterable[Path]) -> Iterator[tuple[Path, SourceModule]]:
    """(file, its source) of each of these files that can be read and parsed."""
    for path in dict.fromkeys(files):
        try:
            module = context.sources.module(path)
        except SourceError:
            continue
        yield path, module


def files_in_stacks(context: RemedyContext) -> list[Path]:
    """The user's files that the program was seen to run through, the script first."""
    files = dict.fromkeys(frame.file for sample in context.measurement.samples for frame in sample.frames)
    paths = (context.program.script, *map(context.user_file, files))
    own: dict[Path, Path] = {}
    for path in paths:
        if path is not None:
            own.setdefault(path.resolve(), path)  # a link to a folder gives it another name
    return list(own.values())


def hot_modules(context: RemedyContext) -> Iterator[tuple[Path, SourceModule, dict[int, float]]]:
    """(file, its source, share of the step by line) of the files that hot lines are in, as far as they can be read."""
    files = hot_files(context)
    for path, module in readable(context, files):
        yield path, module, files[path]


def share_on(of_line: Mapping[int, float], lines: Iterable[int]) -> float:
    """Share of the step on these lines of a file."""
    return sum(of_line.get(line, 0.0) for line in lines)


def hot_functions(context: RemedyContext) -> dict[tuple[Path, cst.FunctionDef], dict[int, float]]:
    """By file and function, of the functions that hot lines are in: share of the step by line."""
    return by_function(context, hot_files(context))


def hot_functions_within(
    context: RemedyContext, package: str
) -> Iterator[tuple[Path, cst.FunctionDef, dict[int, float]]]:
    """(file, function, share of the step by line) of those in which samples fell into a package that they call."""
    calling = {
        (outer.file, outer.line)
        for sample in context.measurement.samples
        for outer, inner in pairwise(sample.frames)
        if package_of(inner.file) == package != package_of(outer.file)
    }
    within = {(context.user_file(file), line) for file, line in calling}
    for (path, function), of_line in hot_functions(context).items():
        if any((path, line) in within for line in of_line):
            yield path, function, of_line


def computed_again(context: RemedyContext) -> Iterator[tuple[tuple[Frame, ...], float]]:
    """(way to a line, share of the step in its operators that were given what they were given before)."""
    again = context.measurement.recomputation
    total_s = sum(line.again_s for line in context.measurement.operators)
    if again is None or not total_s:
        return
    taken = min(again.share, again.seconds / context.measurement.step.mean)
    for line in context.measurement.operators:
        if line.frames and line.again_s:
            yield line.frames, taken * line.again_s / total_s


def share_in_libraries(context: RemedyContext, path: Path, lines: Container[int]) -> float:
    """Share of the samples on these lines that fell into another package's Python code, NumPy's left out."""
    on_lines = inside = 0
    spellings = _spellings(context, path)
    for sample in context.measurement.samples:
        at = [(frame.file, frame.line) for frame in sample.frames]
        places = [place for place, (file, line) in enumerate(at) if file in spellings and line in lines]
        if not places:
            continue
        on_lines += sample.count
        packages = [package_of(file) for file, _ in at[places[-1] : places[-1] + 2]]
        inside += sample.count * (packages[-1] not in ("", "numpy", packages[0]))
    return inside / on_lines if on_lines else 0.0


def _spellings(context: RemedyContext, path: Path) -> set[str]:
    """How the stack samples spell a file."""
    files = {frame.file for sample in context.measurement.samples for frame in sample.frames}
    return {file for file in files if context.user_file(file) == path}


def by_function(
    context: RemedyContext, files: Mapping[Path, Mapping[int, float]]
) -> dict[tuple[Path, cst.FunctionDef], dict[int, float]]:
    """The same of shares by file and line; lines that no function holds are left out."""
    parts = _by_part(context, files)
    return {(path, part): lines for (path, part), lines in parts.items() if isinstance(part, cst.FunctionDef)}


def hot_parts(context: RemedyContext) -> dict[tuple[Path, Part], dict[int, float]]:
    """The same with the file itself for hot lines that are in no function."""
    return _by_part(context, hot_files(context))


def _by_part(
    context: RemedyContext, files: Mapping[Path, Mapping[int, float]]
) -> dict[tuple[Path, Part], dict[int, float]]:
    parts: dict[tuple[Path, Part], dict[int, float]] = {}
    for path, module in readable(context, files):
        for line, share in files[path].items():
            part = module.innermost(line, cst.FunctionDef) or module.tree
            parts.setdefault((path, part), {})[line] = share
    return parts


def _of_step(context: RemedyContext, spot: Hotspot) -> float:
    """The phase's share of the step, divided among its lines by their samples; in workers, as far as the step waits."""
    hotspots = context.report.hotspots
    of_same_phase = [
        other
        for other in hotspots
        if (other.process, other.index, other.phase) == (spot.process, spot.index, spot.phase)
    ]
    line_share = spot.share / (sum(other.share for other in of_same_phase) or 1.0)
    if spot.process != "main":
        return spot.share * _workers_hold_up(context)
    phase = _phase_share(context, spot.phase)
    return line_share * phase if phase else spot.share


def _workers_hold_up(context: RemedyContext) -> float:
    """How much of the step the workers' work takes, or would: 1 when they are never ahead."""
    loader = context.measurement.loader
    if loader is None or not loader.workers:
        return 1.0
    return min(
        1.0, loader.service_s * (loader.batches_per_step or 1.0) / loader.workers / context.measurement.step.mean
    )


def share_of_sample_lines(context: RemedyContext, path: Path, first: int, last: int, *, in_workers: bool) -> float:
    """Share of the step that lines of ``__getitem__`` hold up, with all they call."""
    measured = context.measurement
    pids = measured.worker_pids if in_workers else {measured.main_pid}
    fetching = inside = 0
    spellings = _spellings(context, path)
    for sample in measured.samples:
        if sample.pid not in pids or not any(frame.file.endswith(_FETCH) for frame in sample.frames):
            continue
        fetching += sample.count
        inside += sample.count * any(
            frame.file in spellings and frame.function.endswith("__getitem__") and first <= frame.line <= last
            for frame in sample.frames
        )
    return inside / fetching * share_of_loading(context, in_workers=in_workers) if fetching else 0.0


def share_of_loading(context: RemedyContext, *, in_workers: bool) -> float:
    """Share of the step that the making of batches holds up."""
    return _workers_hold_up(context) if in_workers else _phase_share(context, "data_wait")


def _phase_share(context: RemedyContext, name: str) -> float:
    return sum(phase.share for phase in context.report.phases if phase.name == name)
