"""What a program does before its first step: the function that holds that time, imports aside."""

from __future__ import annotations

import msgspec

from unstall.diagnose.blame import culprit, in_package
from unstall.diagnose.placing import Placed, count, is_import, program_frames
from unstall.diagnose.thresholds import FEWEST_SAMPLES, SET_UP
from unstall.records.measurements import Measurement
from unstall.records.report import LineTime, Startup
from unstall.records.vocabulary import OTHER


def startup(measurement: Measurement) -> Startup | None:
    """The wall time outside the steps, with the function that holds a good part of what lies before them, if one does.

    Its share is of the stacks that were seen then: none are in the first seconds, in which a program imports.
    """
    times = measurement.startup
    seen = [
        Placed(sample, OTHER.name, program_frames(sample.frames))
        for sample in measurement.before_loop
        if sample.pid == measurement.main_pid and sample.main_thread
    ]
    if times is None or count(seen) < FEWEST_SAMPLES:
        return times
    held = culprit([placed for placed in seen if not is_import(placed.sample.frames)], count(seen), "main")
    if held is None or held.share < SET_UP:
        return times
    line = LineTime(function=held.function, file=held.file, line=held.line, share=held.share)
    return msgspec.structs.replace(times, set_up=in_package(line))
