"""Stacks → who is to blame: the function that holds the time of a set of samples, and the hottest lines.

The user's own functions and those of libraries are blamed alike; :mod:`unstall.child.user_files` tells which they are.
What is blamed in a library comes with its package and with the user's line that leads there.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from unstall.child.user_files import is_program_file, is_user_file, runs_loops
from unstall.diagnose import backward_lines, source
from unstall.diagnose.callers import FunctionKey, callers_of, functions_of, loop_functions, looping_caller, who_makes
from unstall.diagnose.evaluation import with_evaluation
from unstall.diagnose.holders import holder_of, holder_of_growth, where_handed_on
from unstall.diagnose.installed import distribution_of
from unstall.diagnose.loop_frameworks import own_code, starting_lines, with_own_code
from unstall.diagnose.placing import Placed, Placer, count, is_import
from unstall.diagnose.program_frames import ProgramFrames, program_frames, short
from unstall.diagnose.thresholds import HOLDS
from unstall.records.measurements import Measurement, SeamSite, Slowing
from unstall.records.observations import Frame, StackSample
from unstall.records.report import Caller, Culprit, Hotspot, LineTime
from unstall.records.vocabulary import BACKWARD, DATA_WAIT, ENV, FORWARD, OTHER, PhaseName

_Line = TypeVar("_Line", bound=LineTime)


class Blame:
    """All samples of a run, placed; those of imports are left out, for they are of no step."""

    def __init__(self, measurement: Measurement):
        self._pid = measurement.main_pid
        self._placer = placer = Placer(measurement)
        self.serving = placer.seams.serving
        """Phases that claim all that happens in their calls."""
        self.main: list[Placed] = []
        self.threads: list[Placed] = []
        """What other threads of the main process do in the program's own code."""
        self.workers: list[Placed] = []
        self.ranks: dict[int, list[Placed]] = defaultdict(list)
        roles = {rank.pid: rank.rank for rank in measurement.ranks}
        for sample in measurement.samples:
            if is_import(sample.frames):
                continue
            if sample.pid == measurement.main_pid:
                if sample.main_thread:
                    self.main.append(placer.place(sample))
                elif program := program_frames(sample.frames):
                    self.threads.append(Placed(sample, DATA_WAIT.name, program))
            elif sample.pid in roles:
                if sample.main_thread:
                    self.ranks[roles[sample.pid]].append(placer.place(sample))
            elif sample.pid in measurement.worker_pids or not measurement.ranks:
                self.workers.append(Placed(sample, DATA_WAIT.name, program_frames(sample.frames)))
        self.pauses: list[Placed] = [
            placer.place(sample)
            for sample in measurement.pause_samples
            if sample.pid == measurement.main_pid and sample.main_thread and not is_import(sample.frames)
        ]
        """Samples of pauses between steps: they say what a pause is made of, and nothing of its share."""
        if measurement.between is not None and measurement.phase(ENV.name) is None:  # else a policy may act
            placed = with_evaluation([*self.main, *self.pauses])
            self.main, self.pauses = placed[: len(self.main)], placed[len(self.main) :]
        self.called_share = backward_lines.called_share(self.main)
        """Of backward, in the program's own functions that autograd calls, like hooks."""
        self.loops = loop_functions(self.main, measurement.sites)
        """The functions that run the training loop."""
        self.starts = starting_lines(measurement.sites)
        """The lines that start a framework's loop."""
        # Not before: a model's function, with its gradients, would lead to two parts of the loop.
        self.main = backward_lines.attributed(self.main, measurement.backward_shares)
        self.total = count(self.main)

    @functools.cached_property
    def recomputed(self) -> list[Placed]:
        """Samples of the main thread in what activation checkpoints compute again."""
        return [placed for placed in self.main if backward_lines.recomputes(placed)]

    def in_phase(self, *phases: str) -> list[Placed]:
        """Samples of the main thread in these phases or places."""
        return [placed for placed in self.main if placed.phase in phases]

    def of_model(self) -> list[Placed]:
        """Samples of the main thread at the lines of the model: in forward, and in backward where the line is known."""
        return [
            placed for placed in self.in_phase(FORWARD.name, BACKWARD.name)
            if placed.phase == FORWARD.name or not backward_lines.is_in_engine(placed)
        ]  # fmt: skip

    def within(self, file: str, line: int) -> list[Placed]:
        """Those of the model's samples that are in the function at this place, or in what it calls."""
        function = source.function_at(file, line)
        return [
            placed for placed in self.of_model()
            if any(frame.file == file and held == function for frame, held in placed.program)
        ]  # fmt: skip

    def grown_culprit(self, slowing: Slowing) -> Culprit | None:
        """Who holds the time of the phase that later steps spend more of than early ones.

        None where no stacks were seen of either, or chance explains the difference.
        """
        early, late = (self._placed(samples) for samples in (slowing.early, slowing.late))
        if not early or not late or not slowing.late_s:
            return None
        worth = slowing.early_s / count(early) / (slowing.late_s / count(late))  # an early sample's time, in late ones
        early, late = (with_own_code(_timed_as(slowing.phase, placed)) for placed in (early, late))
        holder = holder_of_growth(early, late, worth)
        return None if holder is None else _blamed(holder, late, self.total, "main", self.loops)

    def _placed(self, samples: Iterable[StackSample]) -> list[Placed]:
        """Those of the main thread, with their places."""
        return [
            self._placer.place(sample) for sample in samples
            if sample.pid == self._pid and sample.main_thread and not is_import(sample.frames)
        ]  # fmt: skip

    def main_culprit(self, samples: Sequence[Placed]) -> Culprit | None:
        """Who holds the time of these samples of the main thread; None when none of the program's code is in them.

        Where all that the program did was to start a framework's loop, and the framework's own code holds the time,
        that is named.
        """
        found = culprit(samples, self.total, "main", self.loops)
        if found is None or (found.file, found.line) not in self.starts:
            return found
        own = own_code(samples)
        return culprit(own, self.total, "main", self.loops) if count(own) >= HOLDS * count(samples) else found

    def model_culprit(self, samples: Sequence[Placed] = ()) -> Culprit | None:
        """Who holds the time of the model, or of these samples of it: at the loop around its calls, if one is.

        Where that is the training's own loop, which says nothing, it is who holds the time of forward.
        """
        samples = samples or self.of_model()
        found = self.main_culprit(samples)
        if found is None or (found.file, found.function) in self.loops:
            forward = self.in_phase(FORWARD.name)
            in_forward = self.main_culprit(forward)
            if in_forward is None or (in_forward.file, in_forward.function) in self.loops:
                return found
            found, samples = in_forward, forward
        return self._at_its_loop(found, samples)

    def _at_its_loop(self, blamed: Culprit, samples: Sequence[Placed]) -> Culprit:
        """The line that calls the blamed function item by item, where one does: what is to be rewritten is its loop.

        ``samples`` are those in which it is blamed.
        """
        line = looping_caller((blamed.file, blamed.function), samples, self.loops)
        if line is None:
            return blamed
        looping = [placed for placed in samples if (line.file, line.function) in functions_of(placed)]
        share = count(looping) / max(self.total, 1)
        found = _at_hottest_line(looping, line.file, line.function, share, blamed.where)
        callers = callers_of((line.file, line.function), samples, self.loops, self.total)
        code = source.code_at(line.file, line.line)
        return msgspec.structs.replace(found, line=line.line, code=code, via=blamed.function, callers=callers)

    def functions(self, samples: Sequence[Placed], share: float, *, top: int = 3) -> list[LineTime]:
        """The innermost functions of these samples of the main thread, at their hottest lines.

        ``share`` is of the step, and what all the samples together take of it.
        """
        lines: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for placed in samples:
            if placed.program:
                frame, function = placed.program[-1]
                lines[(function.qualname, frame.file)][frame.line] += placed.count
        total = max(count(samples), 1)
        most = sorted(lines.items(), key=lambda item: -item[1].total())[:top]
        return [
            in_package(
                LineTime(
                    function=qualname,
                    file=file,
                    line=hits.most_common(1)[0][0],
                    share=min(1.0, share * hits.total() / total),
                )
            )
            for (qualname, file), hits in most
        ]


def culprit(
    samples: Sequence[Placed], total: int, where: str, loops: frozenset[FunctionKey] = frozenset()
) -> Culprit | None:
    """The deepest function that still holds the time of ``samples``; None when none of the program's is in them.

    Args:
        samples: whose time it is about.
        total: samples of the whole process, for the share that the culprit has of its time.
        where: the process, as reports name it: ``main``, ``worker``, ``rank 3``.
        loops: functions that run the loop that these are of, if they are of one; they are not named as callers.
    """
    deepest = holder_of(samples)
    return None if deepest is None else _blamed(deepest, samples, total, where, loops)


def _blamed(
    deepest: FunctionKey, samples: Sequence[Placed], total: int, where: str, loops: frozenset[FunctionKey]
) -> Culprit:
    """The culprit, where this is the deepest function that holds the time of the samples."""
    holder = where_handed_on(deepest, samples)
    maker = who_makes(holder, samples, loops) if loops else None
    file, qualname = blamed = maker or holder
    share = count(placed for placed in samples if blamed in functions_of(placed)) / max(total, 1)
    found = _at_hottest_line(samples, file, qualname, share, where)
    callers = callers_of(blamed, samples, loops, total)
    return msgspec.structs.replace(found, callers=callers, via=holder[1] if maker else found.via)


def _timed_as(phase: PhaseName, samples: Iterable[Placed]) -> list[Placed]:
    """Those in whose stacks the call is that times the phase; what no call times is other."""
    return [placed for placed in samples if (placed.phase if placed.in_seam else OTHER.name) == phase]


def _at_hottest_line(samples: Sequence[Placed], file: str, qualname: str, share: float, where: str) -> Culprit:
    lines: Counter[int] = Counter()
    through: dict[int, Counter[str]] = defaultdict(Counter)
    callers: Counter[Caller | None] = Counter()
    for placed in samples:
        for depth, (frame, function) in reversed([*enumerate(placed.program)]):
            if frame.file == file and function.qualname == qualname:
                callers[_caller(placed.program[:depth])] += placed.count
                lines[frame.line] += placed.count
                through[frame.line][_library_call(placed.sample.frames, frame)] += placed.count
                break
    line = lines.most_common(1)[0][0]
    via = through[line].most_common(1)[0][0]
    return Culprit(
        function=qualname,
        file=file,
        line=line,
        share=min(1.0, share),
        where=where,
        code=source.code_at(file, line),
        via=via,
        called_by=None if is_user_file(file) else callers.most_common(1)[0][0],
    )


def _caller(above: ProgramFrames) -> Caller | None:
    """The deepest of the user's frames above one of a library."""
    for frame, function in reversed(above):
        if is_user_file(frame.file):
            return Caller(function=function.qualname, file=frame.file, line=frame.line)
    return None


def in_package(line: _Line, sites: Iterable[SeamSite] = ()) -> _Line:
    """The same with the package that it is in, where that is a library.

    Args:
        line: a culprit or hotspot.
        sites: of the run; where samples do not show which line of the user's leads there, the one that leads to these.
    """
    installed = distribution_of(line.file) if is_program_file(line.file) or runs_loops(line.file) else None
    if installed is None:
        return line
    called_by = line.called_by or next((caller for site in sites if (caller := _site_caller(site))), None)
    return msgspec.structs.replace(line, package=installed.package, version=installed.version, called_by=called_by)


def _site_caller(site: SeamSite) -> Caller | None:
    """The user's line that leads to the call of a seam."""
    for file, function, line in ((site.file, site.function, site.line), *site.callers):
        if is_user_file(file):
            return Caller(function=source.function_at(file, line, short(function)).qualname, file=file, line=line)
    return None


def _library_call(frames: Sequence[Frame], frame: Frame) -> str:
    """The function of torch, NumPy and the like that a frame calls into, if that is where the time is."""
    index = max((i for i, candidate in enumerate(frames) if candidate == frame), default=-1)
    if index < 0 or index + 1 >= len(frames):
        return ""
    library = [*itertools.takewhile(lambda below: not is_program_file(below.file), frames[index + 1 :])]
    if not library:
        return ""
    # A decorator's closure tells nothing of the function that it is around.
    called = next((below for below in library if ".<locals>." not in below.function), library[0])
    parts = re.split(r"[/\\]", called.file)
    for marker in ("site-packages", "dist-packages"):
        if marker in parts:
            parts = parts[parts.index(marker) + 1 :]
            break
    else:
        parts = parts[-1:]
    module = ".".join(parts).removesuffix(".py").removesuffix(".__init__")
    return f"{module}.{called.function}" if module and not module.startswith("<") else called.function


def line_culprit(site: SeamSite, share: float) -> Culprit:
    """A culprit that is known from where a seam is called, not from samples."""
    function = source.function_at(site.file, site.line, site.function).qualname
    code = source.code_at(site.file, site.line)
    called_by = None if is_user_file(site.file) else _site_caller(site)
    return Culprit(function=function, file=site.file, line=site.line, share=share, code=code, called_by=called_by)


def culprit_at(file: str, line: int, share: float, via: str = "") -> Culprit:
    """A culprit that is known from a line, with no samples of it."""
    name, code = source.function_at(file, line).qualname, source.code_at(file, line)
    return Culprit(function=name, file=file, line=line, share=share, code=code, via=via)


def hotspots(blame: Blame, *, top: int = 10) -> list[Hotspot]:
    """The program's lines by share of the samples of the processes they run in."""
    spots: list[Hotspot] = []
    for where, group in (("main", blame.main), ("worker", blame.workers)):
        total = count(group)
        counts: Counter[tuple[str, str, int, str]] = Counter()
        callers: dict[tuple[str, str, int, str], Counter[Caller | None]] = defaultdict(Counter)
        for placed in group:
            if placed.program:
                frame, function = placed.program[-1]
                key = (function.qualname, frame.file, frame.line, placed.phase)
                counts[key] += placed.count
                if not is_user_file(frame.file):
                    callers[key][_caller(placed.program)] += placed.count
        for key, hits in counts.most_common(top):
            qualname, file, line, phase = key
            spots.append(
                Hotspot(
                    function=qualname,
                    file=file,
                    line=line,
                    share=hits / total,
                    where=where,
                    phase=phase,
                    called_by=callers[key].most_common(1)[0][0] if key in callers else None,
                )
            )
    spots.sort(key=lambda spot: -spot.share)
    return [in_package(spot) for spot in spots[:top]]
