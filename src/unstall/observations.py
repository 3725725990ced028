"""What was seen of a running program from outside: stacks, and looks at its processes and at the machine.

Times are seconds on the machine's monotonic clock or of a core, sizes are bytes.
"""

from __future__ import annotations

import msgspec


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
