"""The typed records that flow through unstall, and the report contract they serialise to.

This module knows nothing of any other. The :class:`Report` family mirrors the published JSON schema
``unstall/1`` field by field; :class:`Sample`, :class:`Step` and their kin are what the benchmark step
hands to the diagnosis. Times are seconds, shares are 0..1, sizes are bytes, unless a name says otherwise.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA: Literal["unstall/1"] = "unstall/1"

PhaseName = Literal[
    "data_wait",
    "transfer",
    "forward",
    "backward",
    "optimizer",
    "sync",
    "comm",
    "env",
    "callback",
    "validation",
    "other",
]
PHASES: tuple[PhaseName, ...] = PhaseName.__args__  # type: ignore[attr-defined]

PatternName = Literal[
    "input-bound",
    "transfer-bound",
    "compute-bound",
    "overhead-bound",
    "sync-bound",
    "host-bound",
    "callback-bound",
    "environment-bound",
    "communication-bound",
    "straggler",
    "memory-growth",
    "healthy",
]
KnownBy = Literal["measured", "predicted", "estimated"]
Confidence = Literal["high", "medium", "low"]


class Frame(msgspec.Struct, frozen=True):
    """One Python frame: function name as the interpreter gives it, absolute file, current line."""

    function: str
    file: str
    line: int


class StackSample(msgspec.Struct, frozen=True):
    """A distinct stack, outermost frame first, and how often the sampler saw it in one thread."""

    pid: int
    thread: str
    frames: tuple[Frame, ...]
    count: int
    main_thread: bool = True


class ResourcePoint(msgspec.Struct, frozen=True):
    """One look at one process: monotonic time, CPU seconds so far, memory, disk I/O, scheduling delay."""

    t: float
    pid: int
    cpu_s: float
    main_cpu_s: float
    run_delay_s: float
    rss_bytes: int
    read_bytes: int = 0
    write_bytes: int = 0
    read_chars: int = 0
    team_delay_s: float = 0.0
    """Scheduling delay of all its threads together: one that waits for a core holds up a parallel operator."""


class MachinePoint(msgspec.Struct, frozen=True):
    """One look at the whole machine: busy and stolen core-seconds so far, and each GPU's state."""

    t: float
    busy_cpu_s: float
    steal_cpu_s: float
    gpu_utilization: tuple[float, ...] = ()
    gpu_memory_bytes: tuple[int, ...] = ()


# --------------------------------------------------------------------------- the report contract


class RunInfo(msgspec.Struct, kw_only=True):
    """What was run, when, how it ended, and on what."""

    id: str
    command: list[str]
    started: str
    duration_s: float
    steps: int
    exit_code: int | None
    environment: dict[str, Any]
    warmup_steps: int = 0
    world_size: int = 1
    notes: list[str] = msgspec.field(default_factory=list)
    """What could not be measured, and why; said plainly, one line each."""


class StepTime(msgspec.Struct):
    """Seconds a step, over the measured steps."""

    mean: float
    p50: float
    p95: float


class Throughput(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Rates over the measured steps; what was not measured is absent."""

    steps_per_s: float | None
    batches_per_s: float | None = None
    samples_per_s: float | None = None
    env_steps_per_s: float | None = None
    flops_per_s: float | None = None
    mfu: float | None = None
    step_s: StepTime | None = None
    flops_coverage: float | None = None
    """Share of the operator calls seen for which a FLOP formula is known."""


class Utilization(msgspec.Struct, kw_only=True):
    """How busy the hardware was during the measured steps."""

    cpu: float | None = None
    gpu: list[float] | None = None
    run_delay: float | None = None
    rss_peak_bytes: int | None = None
    rss_growth_bytes_per_step: float | None = None
    gpu_memory_peak_bytes: int | None = None
    gpu_memory_growth_bytes_per_step: float | None = None
    network_bytes_per_step: float | None = None
    disk_read_bytes_per_step: float | None = None
    disk_write_bytes_per_step: float | None = None
    other_processes_cores: float | None = None
    """Cores taken by processes outside this program, mean over the measured steps."""


class Phase(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A disjoint part of the mean step on the main thread."""

    name: PhaseName
    share: float
    mean_s: float
    p95_s: float = 0.0
    network_s: float = 0.0
    network_bytes: float = 0.0
    blocked_s: float = 0.0
    """Part of it spent neither on a core nor waiting for one: disk, network, sleep, locks, other ranks."""


class Culprit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The component that is blamed, in the user's own code where there is any."""

    function: str
    file: str
    line: int
    share: float
    where: str = "main"
    code: str = ""
    """The source line itself, stripped."""
    via: str = ""
    """The library call the line spends its time in, if any."""


class Finding(msgspec.Struct, kw_only=True):
    """One pattern that matched: who, why, how much faster it could get, how sure we are."""

    pattern: PatternName
    headroom: float
    headroom_known_by: KnownBy
    confidence: Confidence
    evidence: list[str]
    advice: list[str]
    cause: str | None = None
    culprit: Culprit | None = None


class Ceiling(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Steps per second if everything but this component, or this component alone, were free."""

    component: str
    steps_per_s: float
    known_by: KnownBy
    ci95: tuple[float, float] | None = None
    gap: float | None = None


class Experiment(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One intervention and what it did to the step time."""

    name: str
    intervention: str
    ratio: float
    ci95: tuple[float, float]
    predicted_ratio: float | None = None
    segments: int | None = None


class Remedy(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A change that was tried: whether it is kept, and why not."""

    name: str
    exactness: Literal["exact", "close", "training-changing"]
    kept: bool
    speedup: float | None = None
    ci95: tuple[float, float] | None = None
    predicted_speedup: float | None = None
    equivalent: bool | None = None
    why_not: str | None = None


class ModuleTime(msgspec.Struct, kw_only=True):
    """Mean forward seconds a step of one module, its children's time left out of ``self_s``."""

    name: str
    type: str
    calls_per_step: float
    forward_s: float
    self_s: float


class Hotspot(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A user's line by share of the samples of the process it runs in."""

    function: str
    file: str
    line: int
    share: float
    where: str
    phase: str = "other"
    via: str = ""


class SpanTime(msgspec.Struct, kw_only=True):
    """A span the user named with ``unstall.span``."""

    name: str
    count: int
    total_s: float
    mean_s: float


class Startup(msgspec.Struct, kw_only=True):
    """Wall time outside the measured steps, so that nothing of the run is unaccounted for."""

    before_first_batch_s: float
    worker_start_s: float
    warmup_s: float
    epoch_gaps_s: float
    after_last_step_s: float


class WhatIf(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the pipeline model predicts for one set of changes; times are seconds a step."""

    changes: str
    step_s: float
    low: float
    high: float
    """``low`` to ``high`` holds the true time in about nine of ten cases."""
    speedup: float
    speedup_low: float
    speedup_high: float
    bottleneck: str
    utilisation: dict[str, float] = msgspec.field(default_factory=dict)
    """Share of the time that each server is at work."""
    limit_s: float = 0.0
    """The step at least, without chance and contention."""


class WhatIfReport(msgspec.Struct, kw_only=True):
    """The answer of ``unstall what-if``: what was asked, or where nothing was, what changes would bring the most."""

    run: str
    command: list[str]
    recorded_step_s: float
    answers: list[WhatIf]
    elasticities: dict[str, float]
    """Per cent that the step grows by when a component takes a per cent longer, after the changes; they sum to 1."""
    kind: Literal["what-if"] = "what-if"
    schema: str = "unstall-what-if/1"
    known_by: KnownBy = "predicted"
    notes: list[str] = msgspec.field(default_factory=list)

    def to_json(self) -> bytes:
        """Indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)


class Report(msgspec.Struct, kw_only=True):
    """The report contract, version 1. Extra keys beyond the schema are allowed and additive."""

    kind: Literal["run", "simplify", "optimize", "trace"]
    run: RunInfo
    throughput: Throughput
    utilization: Utilization
    phases: list[Phase]
    verdict: Finding
    findings: list[Finding]
    schema: str = SCHEMA
    ceilings: list[Ceiling] = msgspec.field(default_factory=list)
    experiments: list[Experiment] = msgspec.field(default_factory=list)
    remedies: list[Remedy] = msgspec.field(default_factory=list)
    total_speedup: float | None = None
    patch: str | None = None
    hotspots: list[Hotspot] = msgspec.field(default_factory=list)
    modules: list[ModuleTime] = msgspec.field(default_factory=list)
    spans: list[SpanTime] = msgspec.field(default_factory=list)
    startup: Startup | None = None

    def to_json(self) -> bytes:
        """The report as indented JSON that satisfies ``unstall/1``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    @classmethod
    def from_json(cls, data: bytes | str) -> Report:
        """Read a report back; raises :class:`msgspec.ValidationError` naming the field that is wrong."""
        return msgspec.json.decode(data, type=cls)
