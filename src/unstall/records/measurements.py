"""What the benchmark step hands to the diagnosis: one run, measured.

Times are seconds and per step unless a name says otherwise; a step is the mean measured step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from unstall.records.communication import NodeCommunication
from unstall.records.compiled import CompiledFrame
from unstall.records.model import (
    FrozenPart,
    ModelMeasurement,
    ModuleMeasurement,
    OperatorLine,
    Recomputation,
    ZeroProducts,
)
from unstall.records.observations import StackSample, StackWindow
from unstall.records.report import CallbackTime, PhaseTime, SpanTime, Startup
from unstall.records.run import Between, Generation, GpuState, StepTime
from unstall.records.vocabulary import PhaseName, Plugins


class SeamSite(msgspec.Struct, frozen=True):
    """Where the program calls a seam: its line, and its functions above it, innermost first.

    The program's own are the user's files and those of libraries that may be blamed.
    """

    seam: str
    file: str
    function: str
    line: int
    callers: tuple[tuple[str, str, int], ...] = ()
    """(file, function, line) of the program's frames above."""
    grad: bool = True
    """Whether gradients were enabled: validation calls the model without."""
    evaluates: bool = False
    """Whether it steps or resets an environment in which the policy is only evaluated."""


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
    collate_at: tuple[str, int] = ("", 0)
    """File and line of it."""
    samples_at: tuple[str, int] = ("", 0)
    """File and line of the program's that makes a sample."""
    batches_per_step: float = 0.0
    service_s: float = 0.0
    """Wall seconds to make one batch, in the process that makes it."""
    service_cpu_s: float = 0.0
    service_blocked_s: float = 0.0
    """Seconds of ``service_s`` neither on a core nor waiting for one: disk, network, locks."""
    service_network_s: float = 0.0
    network_bytes: float = 0.0
    collate_s: float = 0.0
    """Seconds of ``service_s`` in collate_fn."""
    start_s: float = 0.0
    """Starting workers and waiting for the first batch of an epoch, a step."""
    epochs: int = 0


class GroupMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives that a rank called in one process group; a step's."""

    name: str
    """The dimension of a mesh, or as the group's maker described it; "default" for the group of all ranks."""
    ranks: tuple[int, ...] = ()
    """The members of the group; empty where they are not known."""
    device: str = ""
    calls: float = 0.0
    bytes: float = 0.0
    """Bytes a step: the larger of what goes in and what comes out; objects that are pickled are not counted."""
    wait_s: float = 0.0
    """Seconds in the calls, and in waiting for those that had returned before they were done."""


class GradientExchange(msgspec.Struct, frozen=True, kw_only=True):
    """What DistributedDataParallel exchanges in a step, as torch logs it: seconds, medians of some steps."""

    took_s: float
    """Seconds from the first bucket's beginning to the last one's end, the wait for other ranks too."""
    hidden_s: float
    """Seconds of ``took_s`` while backward computed."""
    backward_s: float
    buckets: tuple[int, ...] = ()
    """Bytes of each."""
    looks_for_unused: bool = False
    """``find_unused_parameters`` is set, and none was ever unused."""
    copies_buckets: bool = False
    """Gradients are copied into buckets and back."""


class RankMeasurement(msgspec.Struct, frozen=True):
    """One process of a distributed program."""

    rank: int
    pid: int
    step_s: float
    phases: Mapping[PhaseName, float]
    blocked: Mapping[PhaseName, float]
    worker_pids: frozenset[int] = frozenset()
    host: str = ""
    local_rank: int | None = None
    groups: Sequence[GroupMeasurement] = ()
    exchange: GradientExchange | None = None
    """Inside backward; None where no DistributedDataParallel was timed."""
    arrives_last: float | None = None
    """Share of the exchanges with all ranks at which it came last, clocks aligned; None where that is not known."""
    steps: int = 0
    """All that it made, measured or not."""


class GrowingObject(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the program keeps and that grew with its steps. Rates are a step's."""

    path: str
    """How the program reaches it: ``losses``, ``self.history``."""
    kind: str
    """The object's type."""
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
    """For a cache around a function: the function's file, name and first line."""


class MemoryMeasurement(msgspec.Struct, frozen=True):
    """Memory over the measured steps."""

    rss_by_step: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    """(step, resident bytes of the main process)."""
    mapped_by_step: Sequence[tuple[float, float]] = ()
    """(step, bytes of its address space, touched or not: of :attr:`ResourcePoint.mapped_bytes`)."""
    device_by_step: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    free_by_step: Sequence[tuple[float, float]] = ()
    """(step, bytes that the program has freed and its allocator holds); none where that is not told."""
    rss_peak: int | None = None
    device_peak: int | None = None
    growing: Sequence[GrowingObject] = msgspec.field(default_factory=list)
    """What the program keeps and adds to, the most bytes a step first."""
    subnormal: float = 0.0
    """Share of the numbers that an optimizer keeps which are subnormal, at the last look."""
    loop: tuple[str, str] = ("", "")
    """(file, function) of the loop; empty where the program was not asked what it keeps."""
    available: int = 0
    """Bytes that the program may use in all."""

    def has_room_for(self, times: float) -> bool:
        """Whether so many times the peak of the run would fit; no where that is not known."""
        return self.rss_peak is not None and self.rss_peak * times <= self.available


class CompiledFunction(msgspec.Struct, frozen=True):
    """A function that was traced, lowered or compiled again while the loop ran."""

    name: str
    count: int
    """How many times the compiler ran for it."""
    step_s: float
    """Seconds a step."""


class Slowing(msgspec.Struct, frozen=True, kw_only=True):
    """A step that grows with the steps made; seconds are of the line through the measured steps."""

    per_1000: float
    """Growth in 1,000 steps, as a share of the loop's first step."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    begin_s: float
    """The loop's first step."""
    end_s: float
    """The last measured step."""
    phase: PhaseName
    """The phase that holds most of the growth."""
    early: Sequence[StackSample] = msgspec.field(default_factory=list)
    """Stacks from the first half of the steps."""
    late: Sequence[StackSample] = msgspec.field(default_factory=list)
    early_s: float = 0.0
    """A step where the early stacks were seen, on average."""
    late_s: float = 0.0


class Measurement(msgspec.Struct, frozen=True):
    """One run of a program, measured."""

    kind: str
    steps: int
    warmup: int
    total_steps: int
    step: StepTime
    phases: Sequence[PhaseTime]
    cores: float
    main_pid: int
    regular_s: float = 0.0
    """A step without epoch boundary or validation."""
    unhindered_s: Mapping[PhaseName, float] = msgspec.field(default_factory=dict)
    """Seconds of each phase in the steps in which least kept it from running."""
    between: Between | None = None
    """What recurs between steps, where that is a sizeable part of the mean step."""
    worker_pids: frozenset[int] = frozenset()
    rank_pids: frozenset[int] = frozenset()
    main_cpu_s: float = 0.0
    """Core-seconds of the main process a step, all its threads."""
    main_kernel_s: float = 0.0
    """Those of them that the kernel took."""
    page_faults: float = 0.0
    """Minor page faults of the main process a step: pages that the kernel gave it without reading them from a disk."""
    refetch_s: float | None = None
    """What a line of memory costs the main thread a step after it last touched it; None where steps are too short."""
    worker_cpu_s: float = 0.0
    """Core-seconds of its other processes a step."""
    run_delay: float | None = None
    """Share of the step that the main thread was ready to run and had no core."""
    team_delay_s: float = 0.0
    """Seconds a step that the threads of the main process, together, were ready to run and had no core."""
    computing: int = 1
    """Processes of the program that run a loop of a model at the same time, this one and other ranks included."""
    other_cores: float = 0.0
    loader: LoaderMeasurement | None = None
    model: ModelMeasurement = msgspec.field(default_factory=ModelMeasurement)
    generation: Generation | None = None
    modules: Sequence[ModuleMeasurement] = msgspec.field(default_factory=list)
    operators: Sequence[OperatorLine] = ()
    other_operators: Sequence[OperatorLine] = ()
    """Those of lines whose operators have no gradient and compute nothing again."""
    """Those with a gradient, or that compute something again, the costliest first; none where they run on a device,
    and their calls tell nothing."""
    recomputation: Recomputation | None = None
    zero_products: ZeroProducts | None = None
    frozen: FrozenPart | None = None
    world_size: int = 1
    """Ranks of the program, seen or not."""
    ranks: Sequence[RankMeasurement] = msgspec.field(default_factory=list)
    """Those that were seen; none where the program has one rank."""
    unseen_ranks: Sequence[int] = ()
    """The others that share a process group with them: on another node, as a rule."""
    nodes: Sequence[NodeCommunication] = ()
    """The machines whose parts were put together; none for a run that was not gathered."""
    library_calls: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Seconds a step in what common libraries do for a callback, e.g. ``torch.save``."""
    callbacks: Sequence[CallbackTime] = msgspec.field(default_factory=list)
    """Callbacks by class and event, over the whole run, the most time first."""
    compiled: Sequence[CompiledFunction] = ()
    """What was traced and compiled in the measured steps."""
    compiled_frames: Sequence[CompiledFrame] = ()
    """The functions that torch.compile met in the whole run."""
    gc_s: float = 0.0
    memory: MemoryMeasurement = msgspec.field(default_factory=MemoryMeasurement)
    windows_before: Sequence[StackWindow] = ()
    """Stacks of the set-up, imports included."""
    after_loop: Sequence[StackSample] = ()
    """Those after the last step."""
    samples: Sequence[StackSample] = msgspec.field(default_factory=list)
    pause_samples: Sequence[StackSample] = ()
    """Stacks of long pauses between the steps, which are looked at more often than these."""
    sites: Sequence[SeamSite] = msgspec.field(default_factory=list)
    plugins: Plugins = Plugins()
    """The phases and seams that plug-ins added."""
    envs: int = 1
    """Environments in one env step."""
    observations: int = 1
    """Environments that the model is called for at once: of a vector, or stepped in turn."""
    disk_read: float = 0.0
    """Bytes a step that reached the disk, whole tree."""
    read_chars: float = 0.0
    """Bytes a step that were asked of files, from the page cache or not."""
    spread: float = 0.0
    """Standard error of the mean step, relative."""
    slowing: Slowing | None = None
    """How the step grows with the steps made; None where it does not."""
    sampling_failure: str | None = None
    nan_loss: bool = False
    disturbed: bool = False
    """Too few steps were free of unstall's own sampling, or none like the longest, so the others count as well."""
    gpu: Sequence[float] | None = None
    """Utilization of each device over the loop, 0..1; None where none was seen."""
    gpu_states: Sequence[GpuState | None] = ()
    """Clock and power of each device while it was at work in the loop."""
    spans: Sequence[SpanTime] = msgspec.field(default_factory=list)
    """The user's own spans, over the whole run and all processes."""
    startup: Startup | None = None
    began: float = 0.0
    """When the run did, on the clock of ``windows_before``."""
    run_s: float | None = None
    """Wall time of the whole run; None where it did not end by itself."""

    @property
    def operator_lines(self) -> list[OperatorLine]:
        """The program's lines whose operators were timed, with a gradient and without."""
        return [*self.operators, *self.other_operators]

    @property
    def backward_shares(self) -> list[tuple[OperatorLine, float]]:
        """The program's lines whose operators have a gradient, each with its share of backward; the costliest first."""
        total_s = sum(line.backward_s for line in self.operators)
        with_gradient = (line for line in self.operators if line.frames and line.backward_s > 0)
        return [(line, line.backward_s / total_s) for line in with_gradient]

    @property
    def has_peers(self) -> bool:
        """Whether other ranks can keep the main one waiting, seen or not."""
        return len(self.ranks) > 1 or bool(self.ranks and self.unseen_ranks)

    @property
    def samples_per_step(self) -> float | None:
        """Of the loader's batches, else of the model's calls; None where neither is known."""
        loader, model = self.loader, self.model
        if loader and loader.batch_size and loader.batches_per_step:
            return loader.batch_size * loader.batches_per_step
        if self.generation is not None:
            return self.generation.sequences
        if self.kind != "env" and model.batch_size and model.forwards:
            return model.batch_size * model.forwards
        return None

    def phase_s(self, *names: PhaseName) -> float:
        """Seconds a step in these phases."""
        return sum(phase.mean_s for phase in self.phases if phase.name in names)

    def share(self, *names: PhaseName) -> float:
        """Share of the step in these phases."""
        return self.phase_s(*names) / self.step.mean if self.step.mean else 0.0

    def phase(self, name: PhaseName) -> PhaseTime | None:
        return next((phase for phase in self.phases if phase.name == name), None)
