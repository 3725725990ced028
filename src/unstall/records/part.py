"""What one machine of a run leaves for the one that makes the report. Whoever reads it takes it for a stranger's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from unstall.records.measurements import RankMeasurement

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

VERSION = 1
MOST_RANKS = 1 << 20
MOST_CALLS = 256
"""Calls of one kind of exchange that are kept: their median is known to a sixteenth of their scatter."""


class Exchanges(msgspec.Struct, kw_only=True, frozen=True):
    """Every ``stride``-th call of one kind that all ranks enter together, from the first on."""

    kind: str
    """A collective's name, or ``backward``, in which DDP exchanges gradients."""
    stride: int
    starts_f8: bytes
    """Monotonic seconds of its machine, little-endian."""
    ends_f8: bytes

    def __post_init__(self) -> None:
        if self.stride < 1 or self.stride & (self.stride - 1):
            raise ValueError("the stride of the exchanges is no power of two")
        if len(self.starts_f8) % 8 or len(self.starts_f8) != len(self.ends_f8):
            raise ValueError("the series of the exchanges do not fit together")
        if len(self.ends_f8) > 8 * MOST_CALLS:
            raise ValueError(f"more than {MOST_CALLS} exchanges of one kind")

    @property
    def starts(self) -> npt.NDArray[np.float64]:
        """Shape (calls,)."""
        return _floats(self.starts_f8)

    @property
    def ends(self) -> npt.NDArray[np.float64]:
        """Shape (calls,)."""
        return _floats(self.ends_f8)

    @property
    def covered(self) -> int:
        """How many calls there were, those that are left out included."""
        return self.stride * (len(self.ends_f8) // 8)


class RankPart(msgspec.Struct, kw_only=True, frozen=True):
    """One rank of a part."""

    measurement: RankMeasurement
    restarts: int = 0
    """Earlier lives that it had on its machine."""
    exchanges: Sequence[Exchanges] = ()

    def __post_init__(self) -> None:
        measured = self.measurement
        waits = (group.wait_s for group in measured.groups)
        times = (measured.step_s, *measured.phases.values(), *measured.blocked.values(), *waits)
        if not all(math.isfinite(time) and time >= 0 for time in times):
            raise ValueError("a time is no number")


class Part(msgspec.Struct, kw_only=True, frozen=True):
    """The ranks of one ``unstall run --gather``."""

    job: str
    """What every node calls the run; empty where no launcher gave a name."""
    host: str
    world_size: int
    ranks: Sequence[RankPart]
    version: int = VERSION
    restart: int = 0
    """How often the launcher had started all ranks anew when these began."""
    exit_code: int | None = None

    def __post_init__(self) -> None:
        numbers = self.numbers
        if not numbers or len(set(numbers)) != len(numbers):
            raise ValueError("a part needs ranks, each once")
        if not 0 <= min(numbers) <= max(numbers) < self.world_size <= MOST_RANKS:
            raise ValueError("a rank is not in its world")

    @property
    def numbers(self) -> list[int]:
        """Its ranks."""
        return [rank.measurement.rank for rank in self.ranks]

    def is_of(self, other: Part) -> bool:
        """Whether both are of the same run."""
        return (self.job, self.world_size, self.restart) == (other.job, other.world_size, other.restart)


def _floats(data: bytes) -> npt.NDArray[np.float64]:
    import numpy as np

    return np.frombuffer(data, dtype="<f8").astype(np.float64)
