"""What was seen of a running program from outside: stacks, looks at its processes and at the machine, and a live view.

Times are seconds, of looks on the machine's monotonic clock; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from unstall.records.vocabulary import PhaseName


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
    tid: int = 0
    """The system's number of the thread; 0 where it is not known."""


class StackWindow(msgspec.Struct, frozen=True):
    """The stacks that were sampled in one stretch of time, around ``middle``."""

    middle: float
    samples: Sequence[StackSample]
    lost: int = 0
    """How many more could not be read: the program changed its stack meanwhile."""


class ResourcePoint(msgspec.Struct, frozen=True):
    """One look at one process: monotonic time, CPU seconds so far, memory, disk I/O, scheduling delay."""

    t: float
    pid: int
    cpu_s: float
    run_delay_s: float
    rss_bytes: int
    read_bytes: int = 0
    write_bytes: int = 0
    read_chars: int = 0
    team_delay_s: float = 0.0
    """Scheduling delay of all its threads together: one that waits for a core holds up a parallel operator."""
    kernel_s: float = 0.0
    """CPU seconds so far that the kernel took for it."""
    page_faults: int = 0
    """Minor ones so far: pages that the kernel has given it without reading them from a disk."""
    children_cpu_s: float = 0.0
    """CPU seconds of its children that have ended and were waited for, theirs included."""
    mapped_bytes: int = 0
    """Of its address space, touched or not, and once more of the part that it alone can write, so that they grow with
    all that it maps and with all that it allocates out of what it had reserved; 0 where that was not read."""


class GpuClock(msgspec.Struct, frozen=True):
    """How fast a GPU is clocked at a moment, and what keeps it from being faster."""

    mhz: int
    most_mhz: int
    watts: float
    limit_watts: float
    held_back: tuple[str, ...] = ()
    """The driver's reasons: its power limit, heat, a power brake, clocks that somebody set."""


class MachinePoint(msgspec.Struct, frozen=True):
    """One look at the machine: each GPU's state, and what its cores did so far that the program may run on."""

    t: float
    busy_cpu_s: float
    """Core-seconds, whosoever they were."""
    gpu_utilization: tuple[float, ...] = ()
    gpu_memory_bytes: tuple[int, ...] = ()
    gpu_clocks: tuple[GpuClock | None, ...] = ()
    """None for a device that does not tell."""
    beyond_quota: float = 0.0
    """Cores of these that a quota leaves to others at any time."""
    unseen_cpu_s: float = 0.0
    """Of them, core-seconds of the program's processes that ended between two looks, after the last look at each."""


class Observation(msgspec.Struct, frozen=True):
    """What was seen of a program from outside, from its start to its end, on the monotonic clock."""

    began: float
    ended: float = 0.0
    points: Sequence[ResourcePoint] = msgspec.field(default_factory=list)
    machine: Sequence[MachinePoint] = msgspec.field(default_factory=list)
    samples: Sequence[StackSample] = msgspec.field(default_factory=list)
    lost: int = 0
    """How many more could not be read."""
    before_loop: Sequence[StackWindow] = msgspec.field(default_factory=list)
    """Those before the loop, from the third second on; the last may be of its first steps."""
    windows: Sequence[StackWindow] = msgspec.field(default_factory=list)
    """The stacks by when they were seen, and later ones: a long run is looked at again."""
    pauses: Sequence[StackWindow] = msgspec.field(default_factory=list)
    """Further ones, in long pauses between steps: more of these than of the steps."""
    disturbed: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    """When Ctrl-Z held the program up: steps then are not timed."""
    sampled: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    """When stacks were sampled from outside, which slows the program a little: steps then are not timed if there are
    others like them.
    """
    sampling_failure: str | None = None
    stopped: bool = False
    """Ended by unstall after the steps asked for."""


class Usage(msgspec.Struct, frozen=True):
    """What one kind of process takes."""

    processes: int = 0
    cores: float = 0.0
    rss_bytes: int = 0


class LiveView(msgspec.Struct, frozen=True):
    """A run as it is at one moment. Times are seconds."""

    id: str
    command: str = ""
    running_s: float = 0.0
    steps: int = 0
    rate: float | None = None
    """Steps a second over the last few."""
    rates: Sequence[float] = msgspec.field(default_factory=list)
    """Steps a second at earlier looks, oldest first."""
    phases: Mapping[PhaseName, float] = msgspec.field(default_factory=dict)
    """Seconds a step, over ``phase_steps``."""
    phase_steps: int = 0
    usage: Mapping[str, Usage] = msgspec.field(default_factory=dict)
    """Use of the machine by kind: main process, loader workers, its other processes."""
    gpus: Sequence[float] = msgspec.field(default_factory=list)
    """Share of the time that each was at work."""
    sampling: str = "starting"
    """What unstall does at the moment: starting, watching, or sampling stacks."""
    ended: bool = False
