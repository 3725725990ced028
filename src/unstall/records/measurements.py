"""What the benchmark step hands to the diagnosis: one run, measured.

Times are seconds and per step unless a name says otherwise; a step is the mean measured step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from unstall.records.observations import StackSample
from unstall.records.report import Phase, SpanTime, Startup, StepTime
from unstall.records.vocabulary import PhaseName, Plugins


class Site(msgspec.Struct, frozen=True):
    """Where the program calls a seam: the user's line, and the user's functions above it, innermost first."""

    seam: str
    file: str
    function: str
    line: int
    callers: tuple[tuple[str, str, int], ...] = ()
    """(file, function, line) of the user frames above."""
    grad: bool = True
    """Whether gradients were enabled: validation calls the model without."""


class LoaderMeasurement(msgspec.Struct, frozen=True):
    """The data loader of the main loop."""

    workers: int = 0
    batch_size: int | None = None
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory: bool = False
    iterable: bool = False
    in_order: bool = True
    dataset: str = ""
    collate: str = ""
    batches_per_step: float = 0.0
    service_s: float = 0.0
    """To make one batch, wall time, in the process that makes it."""
    service_cpu_s: float = 0.0
    service_blocked_s: float = 0.0
    """Of it, neither on a core nor waiting for one: disk, network, locks."""
    service_network_s: float = 0.0
    network_bytes: float = 0.0
    collate_s: float = 0.0
    """Of it, in collate_fn."""
    start_s: float = 0.0
    """Starting workers and waiting for the first batch of an epoch, a step."""
    epochs: int = 0


class ModelMeasurement(msgspec.Struct, frozen=True):
    """What the model is and does in a step."""

    root: str = ""
    file: str = ""
    line: int = 0
    dtype: str = ""
    device: str = ""
    parameters: int = 0
    threads: int = 0
    compiled: bool = False
    batch_size: int | None = None
    forwards: float = 0.0
    """Outermost calls of the main module in a step."""
    flops: float | None = None
    ops: float | None = None
    flops_coverage: float | None = None
    peak_flops: float | None = None
    """Of this machine, single precision."""


class ModuleMeasurement(msgspec.Struct, frozen=True):
    """One module's forward, from the early steps in which every module call is recorded."""

    name: str
    type: str
    file: str
    line: int
    calls: float
    forward_s: float
    self_s: float
    """Without the modules inside it."""
    children: int
    detail: str = ""
    """The settings of a module of torch's, or of one derived from it, as torch words them."""


class RankMeasurement(msgspec.Struct, frozen=True):
    """One process of a distributed program."""

    rank: int
    pid: int
    step_s: float
    phases: Mapping[PhaseName, float]
    blocked: Mapping[PhaseName, float]
    worker_pids: frozenset[int] = frozenset()


class GrowingObject(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the program keeps and that grew with its steps. Rates are a step's."""

    path: str
    """How the program reaches it: ``losses``, ``self.history``."""
    kind: str
    """Its type."""
    file: str
    function: str
    """The function or class that holds it."""
    len_per_step: float
    bytes_per_step: float
    graph_per_step: float
    """Autograd nodes."""
    graph_nodes: int = 0
    """The size of its graph at the end."""
    wrapped: tuple[str, str, int] | None = None
    """Of a cache around a function: the function's file, name and first line."""


class MemoryMeasurement(msgspec.Struct, frozen=True):
    """Memory over the measured steps."""

    rss_by_step: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    """(step, resident bytes of the main process)."""
    device_by_step: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    rss_peak: int | None = None
    device_peak: int | None = None
    growing: Sequence[GrowingObject] = msgspec.field(default_factory=list)
    """What the program keeps and adds to, the most bytes a step first."""
    loop: tuple[str, str] = ("", "")
    """(file, function) of the loop; empty where the program was not asked what it keeps."""
    available: int = 0
    """Bytes that the program may use in all."""


class Measurement(msgspec.Struct, frozen=True):
    """One run of a program, measured."""

    kind: str
    steps: int
    warmup: int
    total_steps: int
    step: StepTime
    phases: Sequence[Phase]
    cores: float
    main_pid: int
    regular_s: float = 0.0
    """A step without epoch boundary or validation."""
    worker_pids: frozenset[int] = frozenset()
    rank_pids: frozenset[int] = frozenset()
    main_cpu_s: float = 0.0
    """Core-seconds of the main process a step, all its threads."""
    worker_cpu_s: float = 0.0
    """Core-seconds of its other processes a step."""
    run_delay: float | None = None
    """Share of the step that the main thread was ready to run and had no core."""
    team_delay_s: float = 0.0
    """Seconds a step that the threads of the main process, together, were ready to run and had no core."""
    other_cores: float = 0.0
    loader: LoaderMeasurement | None = None
    model: ModelMeasurement = msgspec.field(default_factory=ModelMeasurement)
    modules: Sequence[ModuleMeasurement] = msgspec.field(default_factory=list)
    ranks: Sequence[RankMeasurement] = msgspec.field(default_factory=list)
    callbacks: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Seconds a step by seam, e.g. ``torch.save``."""
    gc_s: float = 0.0
    memory: MemoryMeasurement = msgspec.field(default_factory=MemoryMeasurement)
    samples: Sequence[StackSample] = msgspec.field(default_factory=list)
    sites: Sequence[Site] = msgspec.field(default_factory=list)
    plugins: Plugins = Plugins()
    """The phases and seams that plug-ins added."""
    envs: int = 1
    """Environments in one env step."""
    disk_read: float = 0.0
    """Bytes a step that reached the disk, whole tree."""
    read_chars: float = 0.0
    """Bytes a step that were asked of files, from the page cache or not."""
    spread: float = 0.0
    """Standard error of the mean step, relative."""
    trend: float = 0.0
    """Step time in the last third over that in the first, less one: a step that grows."""
    sampling_failure: str | None = None
    nan_loss: bool = False
    disturbed: bool = False
    """Too few steps were free of unstall's own sampling, so the others count as well."""
    gpu: Sequence[float] | None = None
    """Utilization of each device over the loop, 0..1; None where none was seen."""
    spans: Sequence[SpanTime] = msgspec.field(default_factory=list)
    """The user's own spans, over the whole run and all processes."""
    startup: Startup | None = None

    def phase_s(self, *names: PhaseName) -> float:
        """Seconds a step in these phases."""
        return sum(phase.mean_s for phase in self.phases if phase.name in names)

    def share(self, *names: PhaseName) -> float:
        """Share of the step in these phases."""
        return self.phase_s(*names) / self.step.mean if self.step.mean else 0.0

    def phase(self, name: PhaseName) -> Phase | None:
        return next((phase for phase in self.phases if phase.name == name), None)
