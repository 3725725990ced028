"""One run as it is kept when it is over: its report, every step, the batches, the resources and the stacks.

The series are bytes, so that reading a file of a stranger runs no code of theirs; properties give them as NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from unstall.records.measurements import Measurement
from unstall.records.observations import MachinePoint, ResourcePoint, StackSample
from unstall.records.report import Report
from unstall.records.vocabulary import PhaseName

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]

VERSION = 1

_Type = Literal["<f8", "<f4", "<i4", "|u1"]


class StepSeries(msgspec.Struct, kw_only=True, frozen=True):
    """Every step of the main loop, in order. The bytes are little-endian arrays; the properties are NumPy's."""

    boundaries_f8: bytes
    """Start of each step, monotonic seconds, and the end of the last: one more than there are steps."""
    phases_f4: Mapping[PhaseName, bytes]
    """Seconds of each step in each phase that occurs."""
    measured_u1: bytes
    """1 for the steps that the report's figures rest on: warm, and if others like them are, undisturbed."""
    gap_u1: bytes
    """1 for steps that hold an epoch boundary or validation."""
    first: int = 0
    """Number of the first step kept; those before it, of a very long run, are left out."""

    def __post_init__(self) -> None:
        steps = len(self.measured_u1)
        lengths = {len(self.boundaries_f8) // 8 - 1, len(self.gap_u1)}
        lengths |= {len(data) // 4 for data in self.phases_f4.values()}
        whole = len(self.boundaries_f8) % 8 == 0 and not any(len(data) % 4 for data in self.phases_f4.values())
        if lengths != {steps} or not whole or steps == 0 or self.first < 0:
            raise ValueError("the series of the steps do not have the same length")

    def __len__(self) -> int:
        return len(self.measured_u1)

    @property
    def starts(self) -> Floats:
        """Monotonic seconds, shape (steps,)."""
        return _floats(self.boundaries_f8, "<f8")[:-1]

    @property
    def ends(self) -> Floats:
        """Monotonic seconds, shape (steps,)."""
        return _floats(self.boundaries_f8, "<f8")[1:]

    @property
    def durations(self) -> Floats:
        """Seconds, shape (steps,)."""
        return self.ends - self.starts

    @property
    def measured(self) -> Bools:
        """Which steps the report's figures rest on."""
        return _array(self.measured_u1, "|u1") != 0

    @property
    def at_boundary(self) -> Bools:
        """Which steps hold an epoch boundary or validation."""
        return _array(self.gap_u1, "|u1") != 0

    def phase(self, name: PhaseName) -> Floats:
        """Seconds of each step in a phase, shape (steps,); zeros for a phase that does not occur."""
        import numpy as np

        data = self.phases_f4.get(name)
        return np.zeros(len(self)) if data is None else _floats(data, "<f4")


class FetchSeries(msgspec.Struct, kw_only=True, frozen=True):
    """Batches as they were made: by the loader's workers, or without any by the main process. In order of start."""

    starts_f8: bytes
    wall_f4: bytes
    """Seconds to make the batch."""
    cpu_f4: bytes
    """Seconds of it on a core; NaN where it was not measured (batches that took less than half a millisecond)."""
    blocked_f4: bytes
    """Seconds of it neither on a core nor waiting for one; NaN where it was not measured."""
    pid_i4: bytes
    """The process that made it."""

    def __post_init__(self) -> None:
        count = len(self.starts_f8) // 8
        others = {len(data) for data in (self.wall_f4, self.cpu_f4, self.blocked_f4, self.pid_i4)}
        if len(self.starts_f8) % 8 or others != {4 * count}:
            raise ValueError("the series of the batches do not have the same length")

    def __len__(self) -> int:
        return len(self.starts_f8) // 8

    @property
    def starts(self) -> Floats:
        """Monotonic seconds, shape (batches,)."""
        return _floats(self.starts_f8, "<f8")

    @property
    def wall(self) -> Floats:
        """Seconds, shape (batches,)."""
        return _floats(self.wall_f4, "<f4")

    @property
    def cpu(self) -> Floats:
        """Seconds, shape (batches,), NaN where unknown."""
        return _floats(self.cpu_f4, "<f4")

    @property
    def blocked(self) -> Floats:
        """Seconds, shape (batches,), NaN where unknown."""
        return _floats(self.blocked_f4, "<f4")

    @property
    def pids(self) -> npt.NDArray[np.int32]:
        """Shape (batches,)."""
        return _array(self.pid_i4, "<i4")


class Excerpt(msgspec.Struct, frozen=True):
    """Consecutive lines of a source file."""

    file: str
    first: int
    """Number of the first line, from 1."""
    lines: Sequence[str]

    def holds(self, file: str, line: int) -> bool:
        """Whether a line of a file is among them."""
        return file == self.file and self.first <= line < self.first + len(self.lines)


class Archive(msgspec.Struct, kw_only=True, frozen=True):
    """One run, as it is kept. Times are seconds on the monotonic clock of the machine it ran on."""

    report: Report
    version: int = VERSION
    began: float = 0.0
    ended: float = 0.0
    measurement: Measurement | None = None
    """What the diagnosis was made from; None, as are the series, where no step was seen or only a report is left."""
    steps: StepSeries | None = None
    fetches: FetchSeries | None = None
    epochs: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    """Start of each epoch's iterator in the main process, and seconds until it gave its hand back."""
    resources: Sequence[ResourcePoint] = msgspec.field(default_factory=list)
    machine: Sequence[MachinePoint] = msgspec.field(default_factory=list)
    disturbed: Sequence[tuple[float, float]] = msgspec.field(default_factory=list)
    """When unstall itself took time from the program."""
    stacks: Sequence[StackSample] = msgspec.field(default_factory=list)
    excerpts: Sequence[Excerpt] = msgspec.field(default_factory=list)
    """The source around what the report blames, as it was then."""


def _array(data: bytes, dtype: _Type) -> Any:
    import numpy as np

    return np.frombuffer(data, dtype)


def _floats(data: bytes, dtype: _Type) -> Floats:
    import numpy as np

    floats: Floats = _array(data, dtype).astype(np.float64)
    return floats
