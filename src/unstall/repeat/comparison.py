"""Two recorded runs side by side: what was different about them first, then which is faster, if that can be said.

The speed-up is the mean step time of A over that of B, so above 1 B is faster. It rests on the measured steps (warm-up
and steps that unstall itself disturbed are left out; nothing else is, slow outliers are part of the throughput). Its
interval covers the noise among the steps of each run, and, where the ledger knows how much runs of the same code
differ here, that as well: two runs are only two draws of it.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from unstall import statistics
from unstall.records.archive import Archive
from unstall.records.comparison import (
    CallbackChange,
    ChangedFact,
    Comparison,
    Conclusion,
    PhaseChange,
    Side,
    SpeedupInterval,
)
from unstall.records.vocabulary import PhaseName
from unstall.repeat import differences, revision
from unstall.repeat.noise import Noise
from unstall.repeat.thresholds import BLOCKS, FEWEST_BLOCKS, SURE
from unstall.statistics import Ratio
from unstall.text import units


def compare(a: Archive, b: Archive, noise: Noise | None = None) -> Comparison:
    """Compare two runs. ``noise``: how much runs of the same code differ, from the ledger."""
    ratio = _ratio(a, b)
    widened = noise.widen(ratio) if ratio and noise else ratio
    named = differences.between(a, b)
    return Comparison(
        a=_side(a),
        b=_side(b),
        differences=named,
        conclusion=_conclusion(widened),
        speedup=_interval(widened) if widened else _point(a, b),
        smallest_detectable=_finite(statistics.smallest_detectable(widened)) if widened else None,
        phases=_phases(a, b),
        caveats=_caveats(a, b, ratio, noise, named),
        callbacks=_callbacks(a, b),
        commits=revision.between(Path.cwd(), differences.code_of(a)[0], differences.code_of(b)[0]),
    )


def _ratio(a: Archive, b: Archive) -> Ratio | None:
    first, second = measured_durations(a), measured_durations(b)
    if min(len(first), len(second)) < 2 or min(first.min(), second.min()) <= 0:
        return None
    return statistics.ratio_of_series(first, second)


def measured_durations(archive: Archive) -> np.ndarray:
    """Seconds of each measured step; none where the steps were not kept."""
    if archive.steps is None:
        return np.empty(0)
    return archive.steps.durations[archive.steps.measured]


def _conclusion(ratio: Ratio | None) -> Conclusion:
    if ratio is None or math.isinf(ratio.half_width):
        return "unknown"
    if not ratio.excludes(1.0):
        return "no difference"
    return "faster" if ratio.value > 1 else "slower"


def _interval(ratio: Ratio) -> SpeedupInterval:
    return SpeedupInterval(ratio.value, _finite(ratio.low), _finite(ratio.high))


def _point(a: Archive, b: Archive) -> SpeedupInterval | None:
    first, second = a.report.throughput.steps_per_s, b.report.throughput.steps_per_s
    return SpeedupInterval(second / first) if first and second else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) and value > 0 else None


def _side(archive: Archive) -> Side:
    report = archive.report
    verdict, rates = report.verdict, report.throughput
    culprit = verdict.culprit
    return Side(
        id=report.run.id,
        started=report.run.started,
        command=report.run.command,
        steps=report.run.steps,
        steps_per_s=rates.steps_per_s,
        samples_per_s=rates.samples_per_s,
        p50_s=rates.step_s.p50 if rates.step_s else None,
        p95_s=rates.step_s.p95 if rates.step_s else None,
        verdict=f"{verdict.pattern} ({verdict.cause})" if verdict.cause else verdict.pattern,
        culprit=culprit.label if culprit else None,
        headroom=verdict.headroom if report.run.steps else None,
        ceiling=verdict.ceiling,
    )


def _phases(a: Archive, b: Archive) -> list[PhaseChange]:
    """The phases of both, those that changed most first."""
    first = {phase.name: phase.mean_s for phase in a.report.phases}
    second = {phase.name: phase.mean_s for phase in b.report.phases}
    changes = [
        PhaseChange(name=name, a_s=first.get(name, 0.0), b_s=second.get(name, 0.0), sure=_sure(a, b, name))
        for name in first | second
    ]
    return sorted(changes, key=lambda change: -abs(change.b_s - change.a_s))


def _callbacks(a: Archive, b: Archive) -> list[CallbackChange]:
    """The callbacks that either run calls in its steps, those that changed most first."""
    first, second = (
        {callback.name: callback.step_s for callback in archive.report.callbacks if callback.step_s}
        for archive in (a, b)
    )
    changes = [
        CallbackChange(name=name, a_s=first.get(name, 0.0), b_s=second.get(name, 0.0)) for name in first | second
    ]
    return sorted(changes, key=lambda change: -abs(change.b_s - change.a_s))


def _sure(a: Archive, b: Archive, name: PhaseName) -> bool | None:
    """Whether a phase's means differ by more than Student's t allows, over blocks of steps."""
    blocks = [_block_means(archive, name) for archive in (a, b)]
    fewest = min(len(block) for block in blocks)
    if fewest < FEWEST_BLOCKS:
        return None
    error = math.sqrt(sum(float(block.var(ddof=1)) / len(block) for block in blocks))
    return bool(abs(blocks[0].mean() - blocks[1].mean()) > statistics.student_quantile(SURE, fewest - 1) * error)


def _block_means(archive: Archive, name: PhaseName) -> np.ndarray:
    """Means over ten stretches of the measured steps, fewer of a short run: steps that follow each other are alike."""
    if archive.steps is None:
        return np.empty(0)
    seconds = archive.steps.phase(name)[archive.steps.measured]
    count = min(BLOCKS, len(seconds) // 2)
    return np.array([block.mean() for block in np.array_split(seconds, count)]) if count else np.empty(0)


def _caveats(a: Archive, b: Archive, ratio: Ratio | None, noise: Noise | None, named: list[ChangedFact]) -> list[str]:
    caveats = []
    if ratio is None:
        caveats.append("the steps of at least one run were not kept, so there is no interval")
    elif noise is None:
        caveats.append(
            "how much two runs of the same code differ here is not known, so the interval covers only the noise "
            "within these two; `unstall gate` runs both in turns"
        )
    if differences.of_the_machine(named):
        caveats.append("the machine, its load or its software was not the same: the code may not be the reason")
    if any(difference.name in ("batch size", differences.SAMPLES) for difference in named):
        caveats.append("the number of samples is not the same, so neither is the work in a step: compare samples/s")
    for name, archive in (("A", a), ("B", b)):
        slowing = archive.measurement.slowing if archive.measurement is not None else None
        if slowing is not None:
            rate, low, high = (units.percent(value) for value in (slowing.per_1000, slowing.low, slowing.high))
            caveats.append(
                f"{name} slows down: a step takes {rate} longer every 1,000 steps ({low} to {high}, 95 %), mostly in "
                f"{slowing.phase}; a run of another length gives another ratio"
            )
    for archive in (a, b):
        if archive.measurement is not None and archive.measurement.disturbed:
            caveats.append(
                f"{archive.report.run.id} was so short, or its steps so unlike, that those with stack sampling count"
            )
    return caveats
