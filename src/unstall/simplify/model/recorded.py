"""What the model needs of a run: the steps phase by phase, and how long each batch took to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unstall.measurements import Measurement
from unstall.simplify.model.work import Floats

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured


@dataclass(frozen=True)
class Recorded:
    """One run, as far as the model looks at it; times are seconds."""

    measurement: Measurement
    steps: Floats
    """Seconds of each phase in each regular step (no epoch boundary, no validation), shape (steps, len(PHASES))."""
    blocked: Floats
    """Of these, neither on a core nor waiting for one; same shape."""
    fetches: Floats
    """Of each batch made: wall, core and blocked seconds, shape (batches, 3)."""
    gap_s: float
    """What all epoch boundaries and validations of the measured steps took beyond regular steps, a measured step."""
    device_busy: float | None = None
    """Share of the time that the device was at work, if its driver told."""


def of_measured(measured: Measured, *, device_busy: float | None = None) -> Recorded:
    """From a run that has just been measured."""
    loop, chosen = measured.loop, measured.chosen
    regular = chosen & ~loop.gap
    rows = regular if regular.any() else chosen
    mean = float(loop.durations[rows].mean())
    gaps = loop.durations[chosen & loop.gap]
    return Recorded(
        measurement=measured.measurement,
        steps=loop.phases[rows],
        blocked=np.minimum(loop.blocked[rows], loop.phases[rows]),
        fetches=_fetches(measured),
        gap_s=float(np.clip(gaps - mean, 0, None).sum()) / int(chosen.sum()) if regular.any() else 0.0,
        device_busy=device_busy,
    )


def _fetches(measured: Measured) -> Floats:
    from unstall.benchmark.loader import fetch_seconds

    loader = measured.measurement.loader
    if loader is None:
        return np.empty((0, 3))
    return fetch_seconds(measured.process, measured.processes, measured.loop, workers=loader.workers)
