"""The stretches of time that a trace is divided into: its steps, or all of it as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unstall.trace.intervals import Intervals
from unstall.trace.timeline import Ints, Timeline


@dataclass(frozen=True)
class Windows:
    """Adjoining stretches, one a step; a trace without steps is one stretch."""

    start_ns: Ints
    end_ns: Ints
    marked: bool
    """Whether the trace says where its steps are."""

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def dur_ns(self) -> Ints:
        return self.end_ns - self.start_ns

    @property
    def spans(self) -> Intervals:
        return Intervals(self.start_ns, self.end_ns)

    @property
    def whole(self) -> Intervals:
        """All of them as one."""
        return Intervals(self.start_ns[:1], self.end_ns[-1:])

    @property
    def total_ns(self) -> int:
        return int(self.end_ns[-1] - self.start_ns[0])

    @property
    def step_s(self) -> float:
        """The mean step, seconds."""
        return self.total_ns / len(self) / 1e9


def windows(timeline: Timeline) -> Windows:
    """From each step's start to the next one's, so gaps between steps count; the last until the device is done.

    A window from the first to the last device event would hide what the device waits for at first: it is the host's
    step that counts. Without marked steps it is everything from the first event of any kind to the last.
    """
    steps = timeline.steps
    if not len(steps):
        first, last = timeline.window_ns
        return Windows(np.array([first]), np.array([max(last, first + 1)]), False)
    start = steps.start_ns
    device_end = int(timeline.device.end_ns.max()) if len(timeline.device) else 0
    last = max(int(steps.end_ns.max()), device_end, int(start[-1]) + 1)
    return Windows(start, np.append(start[1:], last), True)
