"""What a GPU trace shows, part of the report, and two traces side by side.

Times are seconds, shares are 0..1, sizes are bytes, unless a name says otherwise.
"""

from __future__ import annotations

import msgspec

from unstall.records.vocabulary import PatternName


class TraceTime(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Time under one name of a trace: an operator, a kernel, a place that waits, a kind of copy."""

    name: str
    share: float
    """Of the steps' time."""
    mean_s: float
    """Seconds a step."""
    count: float = 0.0
    """A step."""
    idle_s: float = 0.0
    """Of the seconds a step, with the device idle."""
    bytes: float = 0.0
    """A step."""
    detail: str = ""


class TraceRegion(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A named part of a traced program, its share of the device's time, and what that is spent on."""

    name: str
    share: float
    pattern: PatternName | None = None
    parts: dict[str, float] = msgspec.field(default_factory=dict)
    """Its own time by use, shares of it that sum to one."""
    mean_s: float = 0.0
    """Seconds a step."""
    busy: float = 0.0
    """Share of its own time in which the device works."""
    exposed: float = 0.0
    """Of that, share in which it communicates or copies and computes nothing."""


class TraceChange(msgspec.Struct, kw_only=True):
    """What a replay predicts for a what-if."""

    what_if: str
    gain: float
    """Recorded step time over predicted."""
    step_s: float


class TraceStep(msgspec.Struct, kw_only=True):
    """One step of a trace: how long, and the share of it for each use of the device."""

    number: int
    step_s: float
    shares: dict[str, float]
    queue_depth: list[float]
    """Kernels submitted and not started, mean over twentieths of the step."""


class TraceRank(msgspec.Struct, kw_only=True):
    """One rank of a traced run; shares of its time."""

    rank: int
    file: str
    step_s: float
    busy: float
    communication: float
    waits: float
    """For other ranks, at collectives."""
    late: float
    """The others wait for it, at collectives."""


class TraceFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a trace shows beyond the verdict; shares are of the steps' time, mean over ranks and devices."""

    files: list[str]
    source: str
    devices: list[str]
    marked_steps: bool
    device: dict[str, float]
    """Disjoint shares that sum to one (compute, communication, copies, idle_*), and those that overlap them."""
    queue: dict[str, float]
    """prompt_share, launch_to_start_p50_s, launch_to_start_p90_s, depth_mean."""
    kernels: dict[str, float]
    """per_step, mean_s, p50_s, p90_s, small_share, graph_share."""
    step_variation: float
    replay_error: float
    replay_steps: int
    critical_path: dict[str, float]
    """Share by kind of time of what the step waits for from its beginning to its end."""
    device_step_s: float | None = None
    """The mean step on the device by CUDA events, outside the profiled steps; of `unstall run` only."""
    critical_operators: dict[str, float] = msgspec.field(default_factory=dict)
    """Share of the critical path by operator, the most first."""
    what_ifs: list[TraceChange] = msgspec.field(default_factory=list)
    steps: list[TraceStep] = msgspec.field(default_factory=list)
    operators: list[TraceTime] = msgspec.field(default_factory=list)
    top_kernels: list[TraceTime] = msgspec.field(default_factory=list)
    waits: list[TraceTime] = msgspec.field(default_factory=list)
    copies: list[TraceTime] = msgspec.field(default_factory=list)
    regions: list[TraceRegion] = msgspec.field(default_factory=list)
    ranks: list[TraceRank] = msgspec.field(default_factory=list)
    unread: dict[str, int] = msgspec.field(default_factory=dict)
    """What could not be read, and how often."""


class TraceChanged(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one use of the device, operator or kernel took in two traces, seconds and calls a step."""

    name: str
    before_s: float
    after_s: float
    before_count: float = 0.0
    after_count: float = 0.0


class TraceComparison(msgspec.Struct, kw_only=True):
    """Two traces of a program side by side, the first is the one before."""

    files: list[str]
    step_s: list[float]
    """The median step of each."""
    ratio: float
    """Of these, before over after: above one is faster."""
    marked_steps: bool
    """Whether both say where their steps are: else all of a trace counts as one."""
    verdicts: list[str]
    uses: list[TraceChanged]
    operators: list[TraceChanged]
    kernels: list[TraceChanged]
