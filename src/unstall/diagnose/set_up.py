"""What a program does before its first step and after its last: the function that holds that time, imports aside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from unstall.diagnose.blame import culprit, in_package
from unstall.diagnose.callers import functions_of
from unstall.diagnose.placing import Placed, count, is_import
from unstall.diagnose.program_frames import program_frames
from unstall.diagnose.thresholds import FEWEST_SAMPLES, SET_UP
from unstall.records.measurements import Measurement
from unstall.records.observations import StackSample, StackWindow
from unstall.records.report import Culprit, LineTime, Startup
from unstall.records.vocabulary import OTHER


class Holder(NamedTuple):
    """A function that holds a stretch of time outside of the loop."""

    culprit: Culprit
    """Its share is of the stacks that were seen."""
    seconds: float


def startup(measurement: Measurement, set_up: Holder | None) -> Startup | None:
    """The wall time outside the steps, with the function that holds a good part of it, if one does.

    ``set_up``: who holds the time before the first step.

    Its share is of the stacks that were seen: none are in the first seconds, in which a program imports.
    """
    if measurement.startup is None:
        return None
    return msgspec.structs.replace(
        measurement.startup,
        set_up=_line(set_up.culprit) if set_up is not None else None,
        wind_up=_line(_holder(_main_stacks(measurement.after_loop, measurement.main_pid))),
    )


def set_up_holder(measurement: Measurement) -> Holder | None:
    """The function that holds the time before the first step; None where none does.

    Each window stands for the time from half-way after the one before it to half-way before the next: the longer a
    program has run, the further they are apart.
    """
    if measurement.startup is None:
        return None
    windows = sorted(measurement.windows_before, key=lambda window: window.middle)
    placed = [_main_stacks(window.samples, measurement.main_pid) for window in windows]
    blamed = _holder([each for stacks in placed for each in stacks])
    if blamed is None:
        return None
    stood_for = _stood_for(windows, measurement.began + measurement.startup.before_first_batch_s)
    held_s = sum(
        for_s * count(each for each in _beside_imports(stacks) if (blamed.file, blamed.function) in functions_of(each))
        / max(count(stacks), 1)
        for for_s, stacks in zip(stood_for, placed)
    )  # fmt: skip
    return Holder(blamed, held_s)


def _stood_for(windows: Sequence[StackWindow], until: float) -> list[float]:
    """Seconds that each window stands for. None are of the time before the first, in which nobody looked."""
    middles = [window.middle for window in windows]
    edges = [*middles[:1], *((a + b) / 2 for a, b in pairwise(middles)), until]
    return [max(0.0, end - begin) for begin, end in pairwise(edges)]


def _main_stacks(samples: Iterable[StackSample], pid: int) -> list[Placed]:
    return [
        Placed(sample, OTHER.name, program_frames(sample.frames))
        for sample in samples
        if sample.pid == pid and sample.main_thread
    ]


def _holder(placed: Sequence[Placed]) -> Culprit | None:
    if count(placed) < FEWEST_SAMPLES:
        return None
    holder = culprit(_beside_imports(placed), count(placed), "main")
    return holder if holder is not None and holder.share >= SET_UP else None


def _beside_imports(placed: Iterable[Placed]) -> list[Placed]:
    return [each for each in placed if not is_import(each.sample.frames)]


def _line(holder: Culprit | None) -> LineTime | None:
    if holder is None:
        return None
    return in_package(LineTime(function=holder.function, file=holder.file, line=holder.line, share=holder.share))
