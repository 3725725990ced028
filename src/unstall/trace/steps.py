"""The iterations of a trace, the thread that drives them, and the windows of time that a trace is divided into."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from unstall.trace.intervals import Intervals
from unstall.trace.timeline import NONE, HostKind, Ids, Ints, StepTable, Timeline

_NUMBER = re.compile(r"(\d+)\D*$")
_FAMILY = re.compile(r"(?i)(?=.*(?:step|iter|batch))(?!optimizer)(?P<stem>.*?)[\s_#:=-]*(?P<number>\d+)\D*$")
"""A range that a program numbers by its iterations: "iteration 12", "train_step#3"."""

_SEEMS_IDLE = 0.1
"""Of the first step, without any work recorded."""


def step_table(timeline: Timeline) -> StepTable:
    """The iterations of the thread that has most of them, by the best sign that the trace gives.

    That is ProfilerStep; without it a family of numbered ranges ("iteration 12"); without that the loader: a step then
    goes from one wait for a batch to the next.
    """
    host = timeline.host
    rows = np.flatnonzero(host.kind == HostKind.STEP).astype(np.int32)
    if not len(rows):
        rows = _numbered_ranges(timeline)
    if not len(rows):
        return _between_batches(timeline)
    rows = _one_at_a_time(timeline, _busiest_thread(timeline, rows))
    numbers = [_number(timeline.names[name]) for name in host.name[rows]]
    return StepTable(host.start_ns[rows], host.dur_ns[rows], rows, np.array(numbers, np.int64))


def _busiest_thread(timeline: Timeline, rows: Ids) -> Ids:
    """Those of the rows that are on the thread that has most of them."""
    threads = timeline.host.thread[rows]
    return rows[threads == np.bincount(threads).argmax()] if len(rows) else rows


def _one_at_a_time(timeline: Timeline, rows: Ids) -> Ids:
    """Of steps that start at the same instant the last: one without a length would be no step."""
    start = timeline.host.start_ns[rows]
    return rows[np.append(start[1:] > start[:-1], True)] if len(rows) else rows


def _between_batches(timeline: Timeline) -> StepTable:
    """From each wait for a batch to the next, the last to the end of what its thread does."""
    host = timeline.host
    rows = np.flatnonzero(host.kind == HostKind.LOADER).astype(np.int32)
    rows = _one_at_a_time(timeline, _busiest_thread(timeline, rows))
    if len(rows) < 2:
        rows = rows[:0]
    start = host.start_ns[rows]
    end = start
    if len(rows):
        last = host.end_ns[host.thread == host.thread[rows[0]]].max()
        end = np.append(start[1:], last)
    return StepTable(start, end - start, rows, np.full(len(rows), NONE, np.int64))


def _number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match[1][-18:]) if match else NONE


def _numbered_ranges(timeline: Timeline) -> Ids:
    """Rows of the largest family of annotations that differ in a number only, at least two, one after another."""
    annotations = np.flatnonzero(timeline.host.kind == HostKind.ANNOTATION).astype(np.int32)
    families: dict[str, list[int]] = {}
    for row, name in zip(annotations.tolist(), timeline.host.name[annotations].tolist()):
        if match := _FAMILY.match(timeline.names[name]):
            families.setdefault(match["stem"], []).append(row)
    sequential = [rows for rows in families.values() if len(rows) > 1 and _in_sequence(timeline, rows)]
    return np.array(max(sequential, key=len, default=[]), np.int32)


def _in_sequence(timeline: Timeline, rows: list[int]) -> bool:
    start, end = timeline.host.start_ns[rows], timeline.host.end_ns[rows]
    return bool((end[:-1] <= start[1:]).all())


def main_thread(timeline: Timeline) -> int:
    """The thread with the steps, else the one that spends the most time in API calls and operators, else any."""
    host = timeline.host
    if not len(host):
        return NONE
    if len(timeline.steps):
        return int(host.thread[timeline.steps.row[0]])
    working = (host.kind == HostKind.OPERATOR) | (host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER)
    weight = np.where(working, host.dur_ns, 0).astype(np.float64)
    return int(np.bincount(host.thread, weights=weight).argmax())


@dataclass(frozen=True)
class StepWindows:
    """Adjoining stretches, one a step; a trace without steps is one stretch."""

    start_ns: Ints
    end_ns: Ints
    marked: bool
    """Whether the trace says where its steps are."""
    submitted_ns: Ints | None = None
    """When the host begins each step, where the device is more than a step behind it; the windows are the device's."""

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def dur_ns(self) -> Ints:
        return self.end_ns - self.start_ns

    @property
    def host_start_ns(self) -> Ints:
        """When the host begins each step."""
        return self.start_ns if self.submitted_ns is None else self.submitted_ns

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


def windows(timeline: Timeline) -> StepWindows:
    """From each step's start to the next one's, so gaps between steps count; the last until the device is done.

    A window from the first to the last device event would hide what the device waits for at first: it is the host's
    step that counts. Without marked steps it is everything from the first event of any kind to the last. Of a device
    that is more than a step behind its host, and seems idle at first, a step is from the first of its work to the first
    of the next one's: it still does what was submitted before the trace, which profilers do not record.
    """
    steps = timeline.steps
    if not len(steps):
        first, last = timeline.window_ns
        return StepWindows(np.array([first]), np.array([max(last, first + 1)]), False)
    device_end = int(timeline.device.end_ns.max()) if len(timeline.device) else 0
    behind = device_steps(timeline)
    if behind is not None:
        return StepWindows(behind, np.append(behind[1:], device_end), True, steps.start_ns)
    start = steps.start_ns
    last = max(int(steps.end_ns.max()), device_end, int(start[-1]) + 1)
    return StepWindows(start, np.append(start[1:], last), True)


def device_steps(timeline: Timeline) -> Ints | None:
    """When the device begins each step's work, if it is always more than a step behind its host; else None.

    None, too, if what it does at first is recorded.
    """
    steps, device = timeline.steps, timeline.device
    if not len(device) or not len(steps):
        return None
    length = np.append(np.diff(steps.start_ns), steps.dur_ns[-1])
    if device.start_ns.min() - steps.start_ns[0] < _SEEMS_IDLE * length[0]:
        return None
    rows = np.flatnonzero(timeline.launch >= 0)
    called = timeline.host.start_ns[timeline.launch[rows]]
    step = np.searchsorted(steps.start_ns, called, side="right") - 1
    inside = (step >= 0) & (called <= steps.end_ns[step])
    begun = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(begun, step[inside], device.start_ns[rows[inside]])
    is_behind = len(np.unique(step[inside])) == len(steps) and bool((begun - steps.start_ns >= length).all())
    return begun if is_behind and bool((np.diff(begun) > 0).all()) else None
