"""One stretch of steps under one condition, measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unstall.benchmark.reader import ProcessRecording
from unstall.benchmark.steps import Loop, find_loop
from unstall.child.layout import ERROR
from unstall.child.seams import autograd, environments, loader, modules, optimizer
from unstall.records.vocabulary import label

Floats = npt.NDArray[np.float64]
_COUNTED = (modules.FORWARD, autograd.BACKWARD, optimizer.STEP, loader.NEXT, environments.STEP)


@dataclass
class Segment:
    """Steps that ran under one condition, after it had settled."""

    durations: Floats
    """Seconds of each step."""
    at_boundary: npt.NDArray[np.bool_]
    """Whether each step holds an epoch boundary or validation."""
    calls: dict[str, float]
    """Calls a step of the seams that tell the course of the program."""
    began: float
    """Monotonic seconds, as ``ended``."""
    ended: float
    other_cores: float = 0.0
    """Cores taken meanwhile by processes outside the program."""
    real_calls: int = 0
    """Calls that stubs had to let through meanwhile."""

    def mean_s(self, whole_epochs: bool) -> float:
        """Seconds a step. ``whole_epochs``: from one epoch's end to the last; otherwise between epochs' ends.

        What happens once an epoch then counts in proportion, or not at all, wherever the segment was cut.
        """
        ends = np.flatnonzero(self.at_boundary)
        if whole_epochs and len(ends) >= 2:
            return float(self.durations[ends[0] + 1 : ends[-1] + 1].mean())
        regular = self.durations[~self.at_boundary]
        return float(self.durations.mean() if whole_epochs or not len(regular) else regular.mean())


def measure(recording: ProcessRecording, kind: str, since: float) -> Segment | None:
    """The whole steps of a recording that began after ``since`` (monotonic seconds); None when there is none."""
    loop = find_loop(recording, only=kind)
    if loop is None:
        return None
    first = int(np.searchsorted(loop.starts, since))
    if first >= len(loop):
        return None
    began, ended = float(loop.starts[first]), float(loop.ends[-1])
    return Segment(
        durations=loop.durations[first:],
        at_boundary=loop.at_boundary[first:],
        calls=_calls(recording, loop, first),
        began=began,
        ended=ended,
    )


def _calls(recording: ProcessRecording, loop: Loop, first: int) -> dict[str, float]:
    steps = len(loop) - first
    calls = {}
    for seam in _COUNTED:
        spans = recording.named(seam.event, main_only=False)
        started = spans["start"][spans["flags"] & ERROR == 0] / 1e9
        inside = (started >= loop.starts[first]) & (started < loop.ends[-1])
        calls[label(seam.event)] = float(inside.sum()) / steps
    return calls
