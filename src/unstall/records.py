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
    component: str | None = None
    """What was free, or slowed, in it."""
    conclusive: bool = True
    """False where noise could explain what was seen, and could hide an effect that matters."""
    elasticity: float | None = None
    """Of a delay: relative change of the step time over that of the component's own time; 1 on the critical path."""
    notes: list[str] = msgspec.field(default_factory=list)


class NotMeasured(msgspec.Struct, kw_only=True):
    """An experiment without a result, and why."""

    name: str
    intervention: str
    why: str


class Study(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the experiments of ``unstall simplify`` tell together. Seconds are a step's."""

    base_s: float
    """The step of the program as it is, in the experiments."""
    elasticity_sum: float | None = None
    """Of all components that were slowed: 1 where they account for the whole step."""
    elasticity_ci95: tuple[float, float] | None = None
    waiting_s: float | None = None
    """With cached batches the step is shorter by this, and by ``taken_s``."""
    taken_s: float | None = None
    """What the loader's workers cost by taking cores from the step: with placebos in their place it stays."""
    data_batches_per_s: float | None = None
    """The loader alone, without the model."""
    disagreements: list[str] = msgspec.field(default_factory=list)
    """Where observation and experiment say different things: both, and why."""
    deeper: list[str] = msgspec.field(default_factory=list)
    """What shows once the first bottleneck is gone."""
    failures: list[NotMeasured] = msgspec.field(default_factory=list)
    untried: list[str] = msgspec.field(default_factory=list)
    sandbox: str = ""
    """What kept the program's files as they were."""


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


class DataStage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One stage of the data pipeline by itself; seconds an item: a sample, or a batch where the dataset gives these."""

    name: str
    seconds: float
    cpu_s: float
    blocked_s: float
    """Neither on a core nor waiting for one: disk, network, locks, sleep."""
    known_by: Literal["replayed", "timed", "traced"]
    """By itself on inputs that were kept; where it is called; or with the interpreter's profile hook in place."""
    share: float = 0.0
    """Of the time of an item, collate included."""
    depth: int = 0
    """Stages that it is called by."""
    file: str = ""
    line: int = 0
    cores_needed: float | None = None
    """To keep up with the model; None where the model's pace is not known."""
    note: str = ""


class DataRate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The whole loader without the model, with so many workers."""

    workers: int
    items_per_s: float | None = None
    cores: float | None = None
    """That it kept busy."""
    start_s: float | None = None
    """Until its first batch."""
    error: str = ""


class DataReport(msgspec.Struct, kw_only=True):
    """The data pipeline alone, as ``unstall data`` measures it."""

    command: list[str]
    loader: dict[str, Any]
    """As the program made it: dataset, length, batch_size, workers, ..., and whether items are samples or batches."""
    stages: list[DataStage]
    rates: list[DataRate]
    ceiling_items_per_s: float | None
    """Of all numbers of workers."""
    model_items_per_s: float | None
    """What the model would take if data were free, from a recorded run; None where there is none."""
    conclusion: str
    first_item_s: float = 0.0
    """The very first item, caches cold."""
    kind: Literal["data"] = "data"
    schema: str = "unstall-data/1"
    notes: list[str] = msgspec.field(default_factory=list)

    def to_json(self) -> bytes:
        """Indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)


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
    device_step_s: float | None = None
    """The mean step on the device by CUDA events, outside the profiled steps; of `unstall run` only."""
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
    study: Study | None = None
    remedies: list[Remedy] = msgspec.field(default_factory=list)
    total_speedup: float | None = None
    patch: str | None = None
    hotspots: list[Hotspot] = msgspec.field(default_factory=list)
    modules: list[ModuleTime] = msgspec.field(default_factory=list)
    spans: list[SpanTime] = msgspec.field(default_factory=list)
    startup: Startup | None = None
    trace: TraceFacts | None = None
    """Of a GPU trace: `unstall trace`, and `unstall run` where there is a device."""

    def to_json(self) -> bytes:
        """The report as indented JSON that satisfies ``unstall/1``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    def _repr_html_(self) -> str:
        """The report in short, as a notebook shows it."""
        from unstall.report import html

        return html.inline(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> Report:
        """Read a report back; raises :class:`msgspec.ValidationError` naming the field that is wrong."""
        return msgspec.json.decode(data, type=cls)
