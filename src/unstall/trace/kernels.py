"""The kernels: how long they are, and whose they are, by kernel and operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unstall.trace.blame import TraceBlame, tidy
from unstall.trace.nesting import pick
from unstall.trace.steps import StepWindows
from unstall.trace.thresholds import SMALL_KERNEL_NS
from unstall.trace.timeline import NONE, DeviceKind, Ids, Timeline

UNLAUNCHED, ALONE = "(launched before the trace)", "(launched outside any operator)"
UNNAMED = (UNLAUNCHED, ALONE)
"""Stands for an operator's name."""


_ALONE = -2


@dataclass(frozen=True)
class Sizes:
    """The distribution of kernel durations, nanoseconds."""

    count: int
    mean: float
    p50: float
    p90: float
    small: float
    """Share of kernels that are shorter than what launching one from Python takes."""


@dataclass(frozen=True)
class Total:
    """Device time under one name."""

    name: str
    ns: float
    count: int
    longest: int
    """Device row of its longest kernel."""


class Kernels:
    """Kernels of a timeline from the first window on, collectives included, copies not."""

    def __init__(self, timeline: Timeline, blame: TraceBlame, windows: StepWindows):
        self._timeline = timeline
        self._blame = blame
        table = timeline.device
        kernels = (table.kind == DeviceKind.KERNEL) | (table.kind == DeviceKind.COLLECTIVE)
        self.rows: Ids = np.flatnonzero(kernels & (table.start_ns >= windows.start_ns[0])).astype(np.int32)

    @cached_property
    def sizes(self) -> Sizes | None:
        """None if there are none."""
        ns = self._timeline.device.dur_ns[self.rows]
        if not len(ns):
            return None
        p50, p90 = np.percentile(ns, (50, 90))
        return Sizes(len(ns), float(ns.mean()), float(p50), float(p90), float((ns < SMALL_KERNEL_NS).mean()))

    def by_kernel(self) -> list[Total]:
        names = self._timeline.names
        return self._totals(self._timeline.device.name[self.rows], lambda code: names[code])

    def by_operator(self) -> list[Total]:
        """By the outermost operator around the launch."""
        names = pick(self._timeline.host.name, self._blame.work.operator[self.rows])
        alone = (names == NONE) & (self._timeline.launch[self.rows] >= 0)
        return self._totals(np.where(alone, _ALONE, names), self._tidy)

    def _tidy(self, code: int) -> str:
        if code < 0:
            return ALONE if code == _ALONE else UNLAUNCHED
        return tidy(self._timeline.names[code])

    def _totals(self, codes: Ids, name: Callable[[int], str]) -> list[Total]:
        ns = self._timeline.device.dur_ns[self.rows]
        distinct, group = np.unique(codes, return_inverse=True)
        total = np.bincount(group, weights=ns, minlength=len(distinct))
        count = np.bincount(group, minlength=len(distinct))
        by_length = np.argsort(ns, kind="stable")
        longest = np.zeros(len(distinct), np.int64)
        longest[group[by_length]] = self.rows[by_length]
        order = np.argsort(-total, kind="stable")
        return [Total(name(int(distinct[i])), float(total[i]), int(count[i]), int(longest[i])) for i in order.tolist()]
