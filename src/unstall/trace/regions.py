"""The pattern of each part of a program: every top-level range, or the model's parts where no range was named.

A pipeline shows several patterns in different parts. The device's time is divided among the parts: a kernel's time
is its part's, and time in which the device is idle is of the part whose kernel ends it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unstall.records import PatternName
from unstall.trace.blame import tidy
from unstall.trace.facts import Facts
from unstall.trace.intervals import Floats
from unstall.trace.timeline import DeviceKind, Ids, Ints

_PATTERN_OF: dict[str, PatternName] = {
    "compute": "compute-bound",
    "communication": "communication-bound",
    "copies": "transfer-bound",
    "loader": "input-bound",
    "sync": "sync-bound",
    "submitting": "overhead-bound",
    "cold": "overhead-bound",
    "host": "host-bound",
}
_CLEAR = 0.4
"""A part whose largest use of time is less than this has no pattern of its own."""


@dataclass(frozen=True)
class Region:
    """One part of the program."""

    name: str
    share: float
    """Of the steps' time on the device, the idle time before its kernels included."""
    pattern: PatternName | None
    parts: dict[str, float]
    """Its own time by use, shares of it."""


def regions(facts: Facts) -> list[Region]:
    """The parts, the largest first; none when nothing is named in the trace."""
    kernels = facts.kernels
    if not kernels.has_regions or not facts.activity.devices:
        return []
    device = facts.activity.devices[0]
    rows = kernels.rows[facts.timeline.device.device[kernels.rows] == device.device]
    of_kernel = _region_names(facts)[facts.timeline.device.device[kernels.rows] == device.device]
    names, group = np.unique(of_kernel, return_inverse=True)
    uses: dict[str, Floats] = {}
    table = facts.timeline.device
    collective = table.kind[rows] == DeviceKind.COLLECTIVE
    for use, chosen in (("compute", ~collective), ("communication", collective)):
        uses[use] = _sums(group[chosen], table.dur_ns[rows[chosen]], len(names))
    for reason, gaps in facts.idle_by_reason.items():
        following = np.searchsorted(table.start_ns[rows], gaps.end)
        some = following < len(rows)
        lengths = (gaps.end - gaps.start)[some]
        uses[reason] = _sums(group[following[some]], lengths, len(names))
    return _named(facts, names, uses)


def _sums(group: Ints, ns: Ints, groups: int) -> Floats:
    return np.asarray(np.bincount(group, weights=ns, minlength=groups), np.float64)


def _region_names(facts: Facts) -> Ids:
    origin = facts.kernels.origin
    chosen = origin.region if (origin.region >= 0).any() else origin.module
    return np.where(chosen >= 0, facts.timeline.host.name[chosen], -1)


def _named(facts: Facts, names: Ids, uses: dict[str, Floats]) -> list[Region]:
    total = np.sum(list(uses.values()), axis=0)
    result = []
    for index in np.argsort(-total).tolist():
        if names[index] < 0 or not total[index]:
            continue
        parts = {use: float(ns[index] / total[index]) for use, ns in uses.items() if ns[index]}
        largest = max(parts, key=lambda use: parts[use])
        result.append(
            Region(
                tidy(facts.timeline.names[names[index]]),
                float(total[index] / facts.windows.total_ns),
                _PATTERN_OF.get(largest) if parts[largest] >= _CLEAR else None,
                parts,
            )
        )
    return result
