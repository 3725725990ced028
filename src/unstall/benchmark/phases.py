"""The phases of a step: of the mean one, and of those in which the machine was free."""

from __future__ import annotations

import numpy as np

from unstall.benchmark.boundaries import Floats
from unstall.benchmark.steps import Bools, Loop
from unstall.benchmark.thresholds import UNHINDERED
from unstall.records.report import PhaseTime
from unstall.records.vocabulary import PhaseName


def mean_phases(loop: Loop, chosen: Bools) -> list[PhaseTime]:
    """The phases of the mean of the chosen steps; those that take no time are left out."""
    total = float(loop.durations[chosen].mean())
    phases = []
    for index, name in enumerate(loop.phase_names):
        seconds = loop.phases[chosen, index]
        mean = float(seconds.mean())
        if mean <= 0:
            continue
        phases.append(
            PhaseTime(
                name=name,
                share=mean / total,
                mean_s=mean,
                p95_s=float(np.percentile(seconds, 95)),
                network_s=float(np.minimum(loop.network[chosen, index], seconds).mean()),
                network_bytes=float(loop.network_bytes[chosen, index].mean()),
                blocked_s=float(np.minimum(loop.blocked[chosen, index], seconds).mean()),
                cpu_s=_known(float(np.minimum(loop.cpu[chosen, index], seconds).mean())),
            )
        )
    return phases


def unhindered(loop: Loop, chosen: Bools) -> dict[PhaseName, float]:
    """Seconds a step of each phase, by the quickest tenth of the chosen steps that have it.

    Who computes with a team of threads waits for the slowest of them: on a busy machine the mean says more about the
    machine than about the program.
    """
    columns = dict(zip(loop.phase_names, loop.phases[chosen].T, strict=True))
    return {name: quickest(column) * float((column > 0).mean()) for name, column in columns.items() if column.any()}


def quickest(seconds: Floats) -> float:
    """The upper end of the quickest tenth of the times that are not zero: what it takes while the neighbours are quiet.

    0 where all are.
    """
    taken = seconds[seconds > 0]
    return float(np.percentile(taken, UNHINDERED)) if taken.size else 0.0


def _known(seconds: float) -> float | None:
    return None if np.isnan(seconds) else seconds
