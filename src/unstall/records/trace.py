"""What a GPU trace shows, part of the report, and two traces side by side.

Times are seconds, shares are 0..1, sizes are bytes, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from unstall.records.vocabulary import PatternName


class TraceTime(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Time under one name of a trace: an operator, a kernel, a place that waits, a kind of copy."""

    name: str
    share: float
    """Share of the steps' time."""
    mean_s: float
    """Seconds a step."""
    count: float = 0.0
    """A step."""
    idle_s: float = 0.0
    """Seconds a step of it with the device idle."""
    bytes: float = 0.0
    """A step."""
    detail: str = ""


class TraceRegion(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A named part of a traced program, its share of the device's time, and what that is spent on."""

    name: str
    share: float
    pattern: PatternName | None = None
    parts: Mapping[str, float] = msgspec.field(default_factory=dict)
    """The region's own time by use, as shares that sum to one."""
    mean_s: float = 0.0
    """Seconds a step."""
    busy: float = 0.0
    """Share of its own time in which the device works."""
    exposed: float = 0.0
    """Of that, share in which it communicates or copies and computes nothing."""


class TraceChange(msgspec.Struct, kw_only=True, frozen=True):
    """What a replay predicts for a what-if."""

    what_if: str
    gain: float
    """Recorded step time over predicted."""
    step_s: float


class TraceStep(msgspec.Struct, kw_only=True, frozen=True):
    """One step of a trace: how long, and the share of it for each use of the device."""

    number: int
    step_s: float
    shares: Mapping[str, float]
    queue_depth: Sequence[float]
    """Kernels submitted and not started, mean over twentieths of the step."""


class TraceRank(msgspec.Struct, kw_only=True, frozen=True):
    """One rank of a traced run; shares of its time."""

    rank: int
    file: str
    step_s: float
    busy: float
    communication: float
    waits: float
    """Share of the step that it waits for other ranks at collectives."""
    late: float
    """The others wait for it, at collectives."""


class TraceFacts(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What a trace shows beyond the verdict; shares are of the steps' time, mean over ranks and devices."""

    files: Sequence[str]
    source: str
    devices: Sequence[str]
    marked_steps: bool
    device: Mapping[str, float]
    """Disjoint shares that sum to one (compute, communication, copies, idle_*), and those that overlap them."""
    queue: Mapping[str, float]
    """prompt_share, launch_to_start_p50_s, launch_to_start_p90_s, depth_mean."""
    kernels: Mapping[str, float]
    """per_step, mean_s, p50_s, p90_s, small_share, graph_share."""
    step_variation: float
    replay_error: float
    replay_steps: int
    critical_path: Mapping[str, float]
    """Share by kind of time of what the step waits for from its beginning to its end."""
    device_step_s: float | None = None
    """The mean step on the device by CUDA events, outside the profiled steps; of `unstall run` only."""
    critical_operators: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Share of the critical path by operator, the most first."""
    what_ifs: Sequence[TraceChange] = msgspec.field(default_factory=list)
    steps: Sequence[TraceStep] = msgspec.field(default_factory=list)
    operators: Sequence[TraceTime] = msgspec.field(default_factory=list)
    top_kernels: Sequence[TraceTime] = msgspec.field(default_factory=list)
    waits: Sequence[TraceTime] = msgspec.field(default_factory=list)
    copies: Sequence[TraceTime] = msgspec.field(default_factory=list)
    regions: Sequence[TraceRegion] = msgspec.field(default_factory=list)
    ranks: Sequence[TraceRank] = msgspec.field(default_factory=list)
    unread: Mapping[str, int] = msgspec.field(default_factory=dict)
    """What could not be read, and how often."""


class TraceChanged(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What one use of the device, operator or kernel took in two traces, seconds and calls a step."""

    name: str
    before_s: float
    after_s: float
    before_count: float = 0.0
    after_count: float = 0.0


class TraceComparison(msgspec.Struct, kw_only=True, frozen=True):
    """Two traces of a program side by side, the first is the one before."""

    files: Sequence[str]
    step_s: Sequence[float]
    """The median step of each."""
    ratio: float
    """Of these, before over after: above one is faster."""
    marked_steps: bool
    """Whether both say where their steps are: else all of a trace counts as one."""
    verdicts: Sequence[str]
    uses: Sequence[TraceChanged]
    operators: Sequence[TraceChanged]
    kernels: Sequence[TraceChanged]
