"""What each batch asks of the servers of a pipeline: drawn from the recording, one row a batch."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """Seconds by batch, each an array of the same length; what a program has not is zero.

    ``*_cpu`` are seconds of computing when alone on the machine, ``*_wait`` seconds on no core.
    """

    service_cpu: Floats
    """Core seconds to make the batch: fetch, transforms, collate, and in a worker its way to the main process."""
    service_wait: Floats
    take_cpu: Floats
    """Core seconds for the main thread to take over a batch that a worker has made."""
    body_cpu: Floats
    """The main thread's own code, on one core."""
    body_wide: Floats
    """The model's mathematics, on ``Layout.width`` cores at once."""
    body_wait: Floats
    aside_cpu: Floats
    """What a thread of its own does after each batch: callbacks taken off the main thread."""
    aside_wait: Floats
    device: Floats

    def __len__(self) -> int:
        return len(self.service_cpu)


@dataclass(frozen=True)
class Layout:
    """Who does the work, and how they take turns."""

    cores: float
    workers: int = 0
    prefetch: int = 2
    """Batches that each worker may be ahead."""
    in_order: bool = True
    width: float = 1.0
    """Cores that ``body_wide`` uses."""
    syncs: bool = False
    """Whether the main thread waits for the device in every step."""
    background: float = 0.0
    """Cores that other programs keep busy."""
    contention: float = 0.0
    """Share of a core's speed that is lost while all the others are busy too."""
    epoch: int = 0
    """Batches in an epoch; 0: one epoch without end."""
    epoch_open_s: float = 0.0
    """Seconds to open an epoch: workers started."""
    epoch_close_s: float = 0.0
    """Seconds of what comes between epochs: validation, a checkpoint."""


def empty(batches: int, **arrays: Floats) -> Work:
    """Work of nothing but what is given."""
    return Work(**{field.name: arrays.get(field.name, np.zeros(batches)) for field in fields(Work)})
