"""Stacks → who is to blame: the user's function that holds the time of a set of samples, and the hottest lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from unstall.child.user_files import is_user_file
from unstall.diagnose import source
from unstall.diagnose.placing import Placed, Placer, count, user_frames
from unstall.records.measurements import Measurement, Site
from unstall.records.observations import Frame
from unstall.records.report import Culprit, Hotspot

HOLDS = 0.5
"""A function holds the time of a set of samples when it is in at least this share of them."""


class Blame:
    """All samples of a run, placed."""

    def __init__(self, measurement: Measurement):
        placer = Placer(measurement)
        self.serving = placer.seams.serving
        """Phases that claim all that happens in their calls."""
        self.main: list[Placed] = []
        self.workers: list[Placed] = []
        self.ranks: dict[int, list[Placed]] = defaultdict(list)
        roles = {rank.pid: rank.rank for rank in measurement.ranks}
        for sample in measurement.samples:
            if sample.pid == measurement.main_pid:
                if sample.main_thread:
                    self.main.append(placer.place(sample))
            elif sample.pid in roles:
                if sample.main_thread:
                    self.ranks[roles[sample.pid]].append(placer.place(sample))
            elif sample.pid in measurement.worker_pids or not measurement.ranks:
                self.workers.append(Placed(sample, "data_wait", user_frames(sample.frames)))
        self.total = count(self.main)

    def in_phase(self, *phases: str) -> list[Placed]:
        """Samples of the main thread in these phases or places."""
        return [placed for placed in self.main if placed.phase in phases]

    def main_culprit(self, samples: Sequence[Placed]) -> Culprit | None:
        """Who holds the time of these samples of the main thread; None when no user code is in them."""
        return culprit(samples, self.total, "main")


def culprit(samples: Sequence[Placed], total: int, where: str) -> Culprit | None:
    """The deepest user function that still holds the time of ``samples``; None when no user code is in them.

    ``total``: samples of the whole process, for the share that the culprit has of its time.
    """
    weights: Counter[tuple[str, str]] = Counter()
    depths: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for placed in samples:
        counted = set()
        for depth, (frame, function) in enumerate(placed.user):
            key = (frame.file, function.qualname)
            if key not in counted:
                counted.add(key)
                weights[key] += placed.count
                depths[key][0] += depth * placed.count
                depths[key][1] += placed.count
    holders = [key for key, weight in weights.items() if weight >= HOLDS * count(samples)]
    if not holders:
        holders = [key for key, _ in weights.most_common(1)]
    if not holders:
        return None
    file, qualname = max(holders, key=lambda key: (depths[key][0] / depths[key][1], weights[key]))
    return _at_hottest_line(samples, file, qualname, weights[(file, qualname)] / max(total, 1), where)


def _at_hottest_line(samples: Sequence[Placed], file: str, qualname: str, share: float, where: str) -> Culprit:
    lines: Counter[int] = Counter()
    through: dict[int, Counter[str]] = defaultdict(Counter)
    for placed in samples:
        for frame, function in reversed(placed.user):
            if frame.file == file and function.qualname == qualname:
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
    )


def _library_call(frames: Sequence[Frame], frame: Frame) -> str:
    """The library function that a user's frame calls into, if that is where the time is."""
    index = max((i for i, candidate in enumerate(frames) if candidate == frame), default=-1)
    if index < 0 or index + 1 >= len(frames):
        return ""
    called = frames[index + 1]
    if is_user_file(called.file):
        return ""
    parts = re.split(r"[/\\]", called.file)
    for marker in ("site-packages", "dist-packages"):
        if marker in parts:
            parts = parts[parts.index(marker) + 1 :]
            break
    else:
        parts = parts[-1:]
    module = ".".join(parts).removesuffix(".py").removesuffix(".__init__")
    return f"{module}.{called.function}" if module and not module.startswith("<") else called.function


def line_culprit(site: Site, share: float) -> Culprit:
    """A culprit that is known from where a seam is called, not from samples."""
    function = source.function_at(site.file, site.line, site.function).qualname
    code = source.code_at(site.file, site.line)
    return Culprit(function=function, file=site.file, line=site.line, share=share, code=code)


def hotspots(blame: Blame, *, top: int = 10) -> list[Hotspot]:
    """The user's lines by share of the samples of the processes they run in."""
    spots = []
    for where, group in (("main", blame.main), ("worker", blame.workers)):
        total = count(group)
        counts: Counter[tuple[str, str, int, str]] = Counter()
        for placed in group:
            if placed.user:
                frame, function = placed.user[-1]
                counts[(function.qualname, frame.file, frame.line, placed.phase)] += placed.count
        for (qualname, file, line, phase), hits in counts.most_common(top):
            spots.append(
                Hotspot(
                    function=qualname,
                    file=file,
                    line=line,
                    share=hits / total,
                    where=where,
                    phase=phase,
                )
            )
    return sorted(spots, key=lambda spot: -spot.share)[:top]
