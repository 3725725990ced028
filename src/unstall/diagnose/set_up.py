"""What a program does before its first step and after its last: the function that holds that time, imports aside."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from unstall.diagnose.blame import culprit, in_package
from unstall.diagnose.placing import Placed, count, is_import, program_frames
from unstall.diagnose.thresholds import FEWEST_SAMPLES, SET_UP
from unstall.records.measurements import Measurement
from unstall.records.observations import StackSample
from unstall.records.report import LineTime, Startup
from unstall.records.vocabulary import OTHER


def startup(measurement: Measurement) -> Startup | None:
    """The wall time outside the steps, with the function that holds a good part of it, if one does.

    Its share is of the stacks that were seen: none are in the first seconds, in which a program imports.
    """
    if measurement.startup is None:
        return None
    return msgspec.structs.replace(
        measurement.startup,
        set_up=_held(measurement.before_loop, measurement.main_pid),
        wind_up=_held(measurement.after_loop, measurement.main_pid),
    )


def _held(samples: Iterable[StackSample], pid: int) -> LineTime | None:
    placed = [
        Placed(sample, OTHER.name, program_frames(sample.frames))
        for sample in samples
        if sample.pid == pid and sample.main_thread
    ]
    if count(placed) < FEWEST_SAMPLES:
        return None
    holder = culprit([each for each in placed if not is_import(each.sample.frames)], count(placed), "main")
    if holder is None or holder.share < SET_UP:
        return None
    return in_package(LineTime(function=holder.function, file=holder.file, line=holder.line, share=holder.share))
