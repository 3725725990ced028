"""The step as the main thread spends it, in the phases of ``unstall run``, as far as a trace tells them apart."""

from __future__ import annotations

import re

import numpy as np

from unstall.records.report import PhaseTime
from unstall.records.vocabulary import PhaseName
from unstall.trace import intervals
from unstall.trace.intervals import Floats, Intervals
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.timeline import Flags, HostKind

_OPTIMIZER = re.compile(r"Optimizer\.step|optimizer[._]step", re.IGNORECASE)
_BACKWARD = re.compile(r"backward", re.IGNORECASE)
_AUTOGRAD = re.compile(r"^autograd::engine|Backward\d*$|AccumulateGrad")
_COLLECTIVE = re.compile(r"^(nccl|gloo|c10d|rccl)[:_]|record_param_comms")


def phases(metrics: TimelineMetrics) -> list[PhaseTime]:
    """Disjoint phases that sum to the step; what no rule knows is ``other``."""
    windows = metrics.windows
    parts = intervals.split(windows.whole, [part for _, part in _sets(metrics)])
    names: list[PhaseName] = [*(name for name, _ in _sets(metrics)), "other"]
    result = []
    for name, part in zip(names, parts):
        seconds: Floats = part.within(windows.spans) / 1e9
        if seconds.sum() > 0:
            share = float(seconds.sum() * 1e9 / windows.total_ns)
            result.append(
                PhaseTime(name=name, share=share, mean_s=float(seconds.mean()), p95_s=float(np.percentile(seconds, 95)))
            )
    return result


def _sets(metrics: TimelineMetrics) -> list[tuple[PhaseName, Intervals]]:
    """In the order in which they claim time."""
    t = metrics.timeline
    host = t.host
    main = host.thread == t.main_thread
    operators = host.kind == HostKind.OPERATOR
    ranges = host.kind == HostKind.ANNOTATION
    calls = metrics.activity.calls

    def of(rows: Flags) -> Intervals:
        return intervals.union(host.start_ns[rows], host.end_ns[rows])

    def named(pattern: re.Pattern[str]) -> Flags:
        return t.names_where(lambda name: bool(pattern.search(name)))[host.name]

    backward = (operators & named(_AUTOGRAD)) | (ranges & main & named(_BACKWARD)) | (operators & ~main)
    return [
        ("data_wait", of((host.kind == HostKind.LOADER) & main)),
        ("sync", of(calls.sync & main)),
        ("transfer", of(calls.copy & main)),
        ("comm", of((operators | ranges) & main & named(_COLLECTIVE))),
        ("optimizer", of((ranges | operators) & main & named(_OPTIMIZER))),
        ("backward", of(backward)),
        ("forward", of((operators | calls.api) & main)),
    ]
