"""One timeline for every source: what host threads and devices did, and when, as NumPy columns.

Readers (Kineto JSON, Nsight SQLite) fill it, everything else in ``unstall.trace`` reads it. No Python object per
event: a row is an index, a name is a number into :attr:`Timeline.names`. Times are int64 nanoseconds since
:attr:`Timeline.origin_ns`; -1 stands for "none" in every id column.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Codes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

NONE = -1


class TraceError(ValueError):
    """A file that cannot be read as a trace at all; the message is one line for the user."""


class HostKind(IntEnum):
    """What an event on a host thread is."""

    OTHER = 0
    OPERATOR = 1
    """A framework operator (``aten::mm``), autograd nodes and record_param_comms included."""
    RUNTIME = 2
    """A CUDA runtime or HIP API call."""
    DRIVER = 3
    """A CUDA driver API call."""
    ANNOTATION = 4
    """A range the program named: record_function, NVTX."""
    STEP = 5
    """One iteration: ProfilerStep#N, or the NVTX range that plays its part."""
    PYTHON = 6
    """A Python function, named ``file.py(line): function``."""
    LOADER = 7
    """The main loop waiting for its DataLoader's next batch."""
    OVERHEAD = 8
    """The profiler's own time (buffer flushes, lazy initialisation)."""


class DeviceKind(IntEnum):
    """What an event on a device stream is."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    COLLECTIVE = 3
    """A communication kernel (NCCL, RCCL, and their kin)."""


class CopyKind(IntEnum):
    """Where a copy goes from and to."""

    NONE = 0
    """Not a copy, or unknown."""
    H2D = 1
    D2H = 2
    D2D = 3
    P2P = 4
    H2H = 5


class HostMemory(IntEnum):
    """The host side of a copy."""

    UNKNOWN = 0
    PAGEABLE = 1
    PINNED = 2


class WaitKind(IntEnum):
    """What waits, and for what."""

    STREAM_WAIT = 0
    """A stream waits for an event of another stream (cudaStreamWaitEvent)."""
    EVENT_SYNC = 1
    STREAM_SYNC = 2
    DEVICE_SYNC = 3


@dataclass(frozen=True)
class Thread:
    """A host thread. ``pid`` and ``tid`` are -1 where the file has text instead, which is then in ``name``."""

    pid: int
    tid: int
    name: str = ""
    process: str = ""


@dataclass(frozen=True)
class Device:
    """A device as the file describes it; what it does not say is None."""

    id: int
    name: str = ""
    memory_bytes: int | None = None
    multiprocessors: int | None = None
    compute: str = ""
    """Compute capability, "9.0"."""


@dataclass(frozen=True)
class Collective:
    """What identifies a collective; what is not recorded is empty or None."""

    name: str = ""
    group: str = ""
    group_size: int | None = None


@dataclass(frozen=True)
class OperatorInputs:
    """The recorded inputs of an operator, one entry an argument ([] or "" where it is no tensor)."""

    dims: tuple[Any, ...] = ()
    types: tuple[Any, ...] = ()
    concrete: tuple[Any, ...] = ()
    """Scalar arguments as text. Kept for convolutions only, whose FLOPs need stride and padding."""

    @classmethod
    def parse(cls, text: str) -> OperatorInputs:
        """From the JSON of up to three lists, as the readers keep them; empty where it is none."""
        try:
            lists = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(lists, list):
            return cls()
        return cls(*(tuple(value) if isinstance(value, list) else () for value in lists[:3]))


@dataclass(frozen=True)
class Stretches:
    """Rows that each have a start and a duration: the columns that all tables of a timeline share."""

    start_ns: Ints
    dur_ns: Ints

    @property
    def end_ns(self) -> Ints:
        return self.start_ns + self.dur_ns

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True)
class HostTable(Stretches):
    """Events of host threads, sorted by start; of two that start together the longer (the outer) is first."""

    name: Ids
    """Index into Timeline.names."""
    thread: Ids
    """Index into Timeline.threads."""
    kind: Codes
    """HostKind."""
    correlation: Ints
    """An API call's id, the same as that of the device work it started."""
    external: Ints
    """An operator's id ("External id"), the same as that of device work started inside it, where recorded."""
    sequence: Ints
    """Autograd's sequence number: forward operator and backward node share it."""
    inputs: Ids
    """Index for Timeline.inputs(), operators recorded with shapes only."""
    stack: Ids
    """Index into Timeline.stacks: the Python stack recorded with the operator (old traces only)."""


@dataclass(frozen=True)
class DeviceTable(Stretches):
    """Work on device streams, sorted by start. Waits are in WaitTable: what is here keeps the device busy."""

    name: Ids
    device: Ids
    """Device number as in Device.id."""
    stream: Ints
    kind: Codes
    """DeviceKind."""
    correlation: Ints
    external: Ints
    bytes: Ints
    """Bytes of a copy or memset, -1 if unknown."""
    copy: Codes
    """CopyKind."""
    memory: Codes
    """HostMemory."""
    graph: Flags
    """Launched as a node of a CUDA graph: many kernels share one launch."""
    collective: Ids
    """Index into Timeline.collectives."""


@dataclass(frozen=True)
class WaitTable(Stretches):
    """Recorded synchronisation (Kineto's cuda_sync, Nsight's SYNCHRONIZATION), sorted by start; often empty."""

    kind: Codes
    """WaitKind."""
    device: Ids
    stream: Ints
    correlation: Ints
    """Correlation id of the API call that waits, or put the wait into the stream."""
    on_stream: Ints
    """The stream that is waited for."""
    on_correlation: Ints
    """Correlation id of the cudaEventRecord that is waited for."""


@dataclass(frozen=True)
class RangeTable(Stretches):
    """Ranges as the profiler shows them on the device (Kineto's gpu_user_annotation), sorted by start; often empty.

    Each goes from the first to the last work that a range of the program's started on a stream. It is no work itself.
    """

    name: Ids
    device: Ids
    stream: Ints

    @classmethod
    def empty(cls) -> RangeTable:
        """Without any."""
        long, short = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return cls(long, long, short, short, long)


@dataclass(frozen=True)
class StepTable(Stretches):
    """The iterations, sorted by start, all of one thread."""

    row: Ids
    """Row in the host table."""
    number: Ints
    """The number in its name, -1 if it has none."""


@dataclass
class Timeline:
    """A trace of one process (one rank), read."""

    path: str
    source: str
    """"kineto" or "nsight"."""
    names: list[str]
    threads: list[Thread]
    host: HostTable
    device: DeviceTable
    waits: WaitTable
    ranges: RangeTable = field(default_factory=RangeTable.empty)
    origin_ns: int = 0
    """Nanoseconds that times count from: since 1970 where the file tells, else on its own clock."""
    devices: list[Device] = field(default_factory=list)
    rank: int | None = None
    world_size: int | None = None
    collectives: list[Collective] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)
    """Python stacks, frames "file.py(line): function" innermost first, separated by semicolons."""
    input_texts: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    """The file's other top-level entries."""
    problems: dict[str, int] = field(default_factory=dict)
    """What could not be read, in words, and how often: {"events without a time": 3}."""
    events: int = 0
    """Entries in the file, those that are not kept here (flows, counters) included."""

    def __post_init__(self) -> None:
        self._inputs: dict[int, OperatorInputs] = {}

    def inputs(self, index: int) -> OperatorInputs:
        """Recorded inputs by an index of HostTable.inputs; empty for -1."""
        if index < 0:
            return OperatorInputs()
        if index not in self._inputs:
            self._inputs[index] = OperatorInputs.parse(self.input_texts[index])
        return self._inputs[index]

    def names_where(self, predicate: Callable[[str], bool]) -> Flags:
        """One flag a name: ``t.names_where(f)[t.host.name]`` selects rows; f sees each distinct name once."""
        return np.fromiter((predicate(name) for name in self.names), bool, len(self.names))

    @cached_property
    def parent(self) -> Ids:
        """For each host row, the row of the innermost event around it on its thread, or -1."""
        from unstall.trace.nesting import parents

        return parents(self.host.start_ns, self.host.dur_ns, self.host.thread)

    @cached_property
    def launch(self) -> Ids:
        """For each device row, the row of the host API call that started it (same correlation), or -1."""
        from unstall.trace.nesting import launches

        return launches(self.host, self.device)

    @cached_property
    def steps(self) -> StepTable:
        """The iterations of the thread that has most of them; empty if none are marked."""
        from unstall.trace.steps import step_table

        return step_table(self)

    @cached_property
    def main_thread(self) -> int:
        """Index of the thread that drives the program: it has the steps, else the operators; -1 if no host events."""
        from unstall.trace.steps import main_thread

        return main_thread(self)

    @cached_property
    def window_ns(self) -> tuple[int, int]:
        """First start and last end over host and device events; (0, 0) if there are none."""
        tables = [table for table in (self.host, self.device) if len(table)]
        if not tables:
            return 0, 0
        return min(int(t.start_ns[0]) for t in tables), max(int(t.end_ns.max()) for t in tables)


_SINGULAR = {"events": "event", "entries": "entry", "durations": "duration", "integers": "integer", "ranges": "range"}
_VERB = {"are": "is"}


def problem_lines(problems: dict[str, int]) -> list[str]:
    """Timeline.problems as a person reads them: "3 events without a time", "1 event without a time".

    What is wrong with a file as a whole needs no number.
    """
    return [_problem_line(what, count) for what, count in problems.items()]


def _problem_line(what: str, count: int) -> str:
    words = what.split(" ")
    if not any(word in _SINGULAR for word in words):
        return what if count == 1 else f"{count:,} times: {what}"
    if count > 1:
        return f"{count:,} {what}"
    noun = next(number for number, word in enumerate(words) if word in _SINGULAR)
    words[noun] = _SINGULAR[words[noun]]
    return f"1 {' '.join(_VERB.get(word, word) for word in words)}"
