"""What the model needs of a run: the steps phase by phase, and how long each batch took to make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unstall.benchmark.archive import fetch_series, step_series
from unstall.diagnose.features import build
from unstall.model.work import Floats
from unstall.records.archive import Archive, FetchSeries, StepSeries
from unstall.records.measurements import Measurement
from unstall.records.report import PhaseTime
from unstall.records.vocabulary import DATA_WAIT, OTHER, PHASE_NAMES, PhaseName, in_order

if TYPE_CHECKING:
    from unstall.benchmark.measure import LoopMeasurement


class NotRecorded(ValueError):
    """The run holds nothing to make a model of; the message says what is missing and what to do."""


@dataclass(frozen=True)
class ModelInput:
    """One run, as far as the model looks at it; times are seconds."""

    measurement: Measurement
    steps: Floats
    """Seconds of each phase in each regular step (no epoch boundary, no validation), shape (steps, len(names))."""
    fetches: Floats
    """What each batch took to make: wall, core and blocked seconds, shape (batches, 3)."""
    gap_s: float
    """What all epoch boundaries and validations of the measured steps took beyond regular steps, a measured step."""
    device_busy: float | None = None
    """Share of the time that the device was at work, if its driver told."""
    gap_shares: Mapping[str, float] = field(default_factory=dict)
    """The phases that the time of ``gap_s`` goes to, as shares of it."""
    names: tuple[PhaseName, ...] = PHASE_NAMES
    """Names of the phases: the built-in ones, then those of plug-ins."""

    @property
    def blocked(self) -> Floats:
        """Of ``steps``, neither on a core nor waiting for one: the mean share of each phase."""
        shares = {phase.name: phase.blocked_s / phase.mean_s for phase in self.measurement.phases if phase.mean_s}
        return self.steps * np.minimum([shares.get(name, 0.0) for name in self.names], 1.0)


def of_measured(measured: LoopMeasurement) -> ModelInput:
    """From a run that has just been measured."""
    return _recorded(
        measured.measurement,
        step_series(measured),
        fetch_series(measured),
        attributed=build(measured.measurement).attributed,
    )


def of_archive(archive: Archive) -> ModelInput:
    """From an archived run. Raises :class:`NotRecorded` where only its report is left, or it had no steps."""
    if archive.measurement is None or archive.steps is None:
        raise NotRecorded(
            f"run {archive.report.run.id} holds no recorded steps to predict from: record it again with `unstall run`"
        )
    busy = archive.report.utilization.gpu
    return _recorded(
        archive.measurement,
        archive.steps,
        archive.fetches,
        attributed=_attributed(archive.report.phases) or build(archive.measurement).attributed,
        device_busy=sum(busy) / len(busy) if busy else None,
    )


def _attributed(phases: Sequence[PhaseTime]) -> dict[str, float]:
    """Seconds of each phase in the report's account; empty in reports of version 1, which do not have it."""
    return {phase.name: phase.attributed_s for phase in phases if phase.attributed_s is not None}


def _recorded(
    measurement: Measurement,
    series: StepSeries,
    fetches: FetchSeries | None,
    *,
    attributed: Mapping[str, float],
    device_busy: float | None = None,
) -> ModelInput:
    regular = series.measured & ~series.at_boundary
    rows = regular if regular.any() else series.measured
    durations = series.durations
    gaps = series.measured & series.at_boundary
    beyond = durations[gaps] - durations[rows].mean()
    names = tuple(in_order([*PHASE_NAMES, *series.phases_f4]))
    phases = _told_apart(np.stack([series.phase(name) for name in names], axis=1), names, measurement, attributed)
    return ModelInput(
        measurement=measurement,
        steps=phases[rows],
        fetches=_fetch_seconds(fetches, series) if fetches is not None else np.empty((0, 3)),
        gap_s=float(np.clip(beyond, 0, None).sum()) / int(series.measured.sum()) if regular.any() else 0.0,
        device_busy=device_busy,
        gap_shares=_gap_shares(phases[gaps], phases[rows], names),
        names=names,
    )


def _gap_shares(gaps: Floats, regular: Floats, names: Sequence[PhaseName]) -> dict[str, float]:
    """Of what the steps with a gap take beyond regular ones, the share of each phase."""
    if not len(gaps):
        return {}
    beyond = np.clip(gaps.mean(axis=0) - regular.mean(axis=0), 0, None)
    total = float(beyond.sum())
    return {name: float(part) / total for name, part in zip(names, beyond) if part > 0}


def _told_apart(
    steps: Floats, names: Sequence[PhaseName], measurement: Measurement, attributed: Mapping[str, float]
) -> Floats:
    """What no seam claims is in `other`; the part that the samples know better is moved to its own phase."""
    recorded = {phase.name: phase.mean_s for phase in measurement.phases}
    other = names.index(OTHER.name)
    mean = recorded.get(OTHER.name, 0.0)
    rest = steps[:, other].copy()
    for index, name in enumerate(names):
        claimed = attributed.get(name, 0.0) - recorded.get(name, 0.0)
        is_loader_wait = name == DATA_WAIT.name and measurement.loader is not None
        if index != other and mean > 0 and claimed > 0 and not is_loader_wait:
            moved = rest * min(claimed / mean, 1.0)
            steps[:, index] += moved
            steps[:, other] -= moved
    return np.clip(steps, 0, None)


def _fetch_seconds(fetches: FetchSeries, series: StepSeries) -> Floats:
    """Of the batches that were made during the loop, those whose core time is known; if none is, all was on a core."""
    inside = (fetches.starts >= series.starts[0]) & (fetches.starts < series.ends[-1])
    timed = inside & ~np.isnan(fetches.cpu)
    if not timed.any():
        wall = fetches.wall[inside]
        return np.stack([wall, wall, np.zeros(len(wall))], axis=1)
    wall, cpu, blocked = fetches.wall[timed], fetches.cpu[timed], fetches.blocked[timed]
    return np.stack([wall, np.minimum(cpu, wall), np.nan_to_num(blocked)], axis=1)
