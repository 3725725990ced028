"""From the results of the experiments to the report: ceilings, experiments, and the verdict as they leave it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import geometric_mean

import msgspec

from unstall.child.experiments.interventions.cached import CachedIntervention
from unstall.records import experiments as records
from unstall.records.experiments import Ceiling, NotMeasured, Study
from unstall.records.report import Report
from unstall.simplify import predictor, simplify_verdict, thresholds
from unstall.simplify.experiment import ExperimentResult
from unstall.simplify.simplifier import SimplifyResult
from unstall.simplify.simplify_verdict import WaitingSplit
from unstall.statistics import Ratio
from unstall.text.units import percent


def make_report(simplified: SimplifyResult, sandbox: str, notes: Sequence[str] = ()) -> Report:
    """The report of ``unstall simplify``: that of the first run, with what the experiments add and correct."""
    watched = simplified.first.report
    run = msgspec.structs.replace(watched.run, notes=[*watched.run.notes, *notes])
    report = msgspec.structs.replace(watched, kind="simplify", run=run)
    if simplified.measurement is None:
        return report
    done = [result for result in simplified.results if result.ratio is not None and result.ratio.blocks >= 2]
    base_s = _base_s(done) or simplified.measurement.step.mean
    split = waiting_split(base_s, done)
    findings, disagreements = simplify_verdict.restate(report, done, split)
    total = elasticity_sum(done)
    study = Study(
        base_s=base_s,
        elasticity_sum=total[0] if total else None,
        elasticity_ci95=(total[0] - total[1], total[0] + total[1]) if total else None,
        elasticity_says=meaning_of_sum(*total) if total else "",
        waiting_s=split.waiting_s if split else None,
        taken_s=split.contention_s if split else None,
        disagreements=disagreements,
        deeper=deeper_bottlenecks(done),
        failures=[_failure(result) for result in simplified.results if result not in done],
        untried=[experiment.name for experiment in simplified.untried],
        sandbox=sandbox,
        runs=simplified.runs,
    )
    pipeline = predictor.pipeline_of(simplified.first.measured)
    return msgspec.structs.replace(
        report,
        verdict=findings[0],
        findings=findings,
        ceilings=_ceilings(simplified, done, base_s),
        experiments=[_experiment(result, predictor.speedup(pipeline, result.experiment)) for result in done],
        study=study,
    )


def elasticity(result: ExperimentResult) -> tuple[float, float, float] | None:
    """Of a delay: d ln(step) / d ln(component), and its 95 % interval; None for other experiments."""
    ratio, share = result.ratio, result.experiment.share
    if ratio is None or share is None:
        return None
    scale = math.log1p(share)
    low, high = _finite_interval(ratio)
    return -math.log(ratio.value) / scale, -math.log(high) / scale, -math.log(low) / scale


def waiting_split(base_s: float, results: list[ExperimentResult]) -> WaitingSplit | None:
    """What is waited for, and what the workers take in cores; None unless all three arms were measured."""
    ratios = {result.experiment.intervention: result.ratio for result in results if result.state == "measured"}
    cached, placebo = ratios.get(CachedIntervention.name), ratios.get("placebo")
    if cached is None or placebo is None:
        return None
    cached_s = base_s / cached.value
    placebo_s = cached_s / placebo.value
    return WaitingSplit(base_s, waiting_s=base_s - placebo_s, contention_s=placebo_s - cached_s)


def elasticity_sum(results: list[ExperimentResult]) -> tuple[float, float] | None:
    """The sum of the elasticities, and half of its 95 % interval; None for fewer than two.

    Each component counts once: one that was slowed in two ways, as it computes. A delay of one rank is of none.
    """
    slowed = [result for result in results if result.experiment.component is not None]
    ordered = sorted(slowed, key=lambda result: not _is_asleep(result))
    slopes = {result.experiment.component: slope for result in ordered if (slope := elasticity(result)) is not None}
    if len(slopes) < 2:
        return None
    half = math.sqrt(sum(((high - low) / 2) ** 2 for _, low, high in slopes.values()))
    return sum(value for value, _, _ in slopes.values()), half


def meaning_of_sum(total: float, half: float) -> str:
    """A step's time is homogeneous in the times of its parts: what a sum other than 1 means."""
    if half > thresholds.VAGUE_SUM:
        return "too uncertain to tell whether something is missing"
    if abs(total - 1) <= half:
        return "the components account for the step"
    if total < 1:
        return f"{percent(1 - total)} of the step is in none of them: code that was not slowed, or a constant wait"
    return (
        "more than the step: one is part of another, or takes cores that the others need "
        "(a delay that sleeps, NAME=+20%:sleep, takes none)"
    )


def deeper_bottlenecks(results: list[ExperimentResult]) -> list[str]:
    """What the interactions say: how much the second is worth, alone and once the first is gone."""
    alone = [result for result in results if not result.experiment.base]
    lines = []
    for result in results:
        ratio = result.ratio
        if result.experiment.intervention != "interaction" or ratio is None or result.state != "measured":
            continue
        before = next((other.ratio for other in alone if other.experiment.arm == result.experiment.arm), None)
        words = f"{result.experiment.name}: {ratio.value:.2f}×"
        if before is not None:
            words += f", {before.value:.2f}× by itself"
        if ratio.low > thresholds.WORTH_DEEPER:
            words += ": the next bottleneck"
        lines.append(words)
    return lines


def _scaling(result: ExperimentResult) -> list[str]:
    """Of one rank alone: what share of its speed a rank keeps beside the others, by the same batch for each rank."""
    ratio = result.ratio
    if ratio is None or "ranks" not in (result.experiment.settings or {}):
        return []
    if math.isinf(ratio.half_width):
        return [f"scaling efficiency {percent(1 / ratio.value)}; too few comparisons tell how sure that is"]
    efficiency, low, high = (percent(1 / value) for value in (ratio.value, ratio.high, ratio.low))
    return [f"scaling efficiency {efficiency} ({low} to {high})"]


def _answering(result: ExperimentResult) -> list[str]:
    """What recorded answers cost, where that is more than a function that is free may."""
    share = result.answering_share
    if share < thresholds.NOTED_ANSWERING:
        return []
    return [f"giving recorded answers took {percent(share)} of a step without it: left out"]


def _experiment(result: ExperimentResult, predicted: predictor.PredictedSpeedup | None) -> records.ReportedExperiment:
    ratio, experiment = result.ratio, result.experiment
    assert ratio is not None
    slope, disturbed = elasticity(result), len(result.disturbed_log_ratios)
    return records.ReportedExperiment(
        name=experiment.name,
        intervention=experiment.intervention,
        ratio=ratio.value,
        ci95=_finite_interval(ratio),
        predicted_ratio=predicted.value if predicted else None,
        predicted_interval=(predicted.low, predicted.high) if predicted else None,
        segments=4 * ratio.blocks,
        component=experiment.component,
        conclusive=result.state == "measured",
        elasticity=slope[0] if slope else None,
        notes=[
            *result.notes,
            *_scaling(result),
            *_answering(result),
            *([f"{disturbed} blocks were disturbed"] if disturbed else []),
        ],
    )


def _finite_interval(ratio: Ratio) -> tuple[float, float]:
    """The interval in numbers that JSON has: one that is open above ends at a million."""
    return max(ratio.low, 1e-6), min(ratio.high, 1e6)


def _base_s(done: list[ExperimentResult]) -> float | None:
    """The step of the program as it is: the geometric mean over all blocks in which it ran."""
    values = [seconds for result in done if not result.experiment.base for seconds in result.base_s]
    return geometric_mean(values) if values else None


def _ceilings(simplified: SimplifyResult, done: list[ExperimentResult], base_s: float) -> list[Ceiling]:
    ceilings = []
    for result in done:
        ratio, component = result.ratio, result.experiment.component
        if component is None or result.experiment.share is not None or ratio is None or result.state != "measured":
            continue
        low, high = _finite_interval(ratio)
        ceilings.append(
            Ceiling(
                component=f"without {component}",
                steps_per_s=ratio.value / base_s,
                known_by="measured",
                ci95=(low / base_s, high / base_s),
                gap=max(0.0, 1 - 1 / ratio.value),
            )
        )
    measured = {ceiling.component for ceiling in ceilings}
    ceilings += [ceiling for ceiling in simplified.first.report.ceilings if ceiling.component not in measured]
    return sorted(ceilings, key=lambda ceiling: -ceiling.steps_per_s)


def _failure(result: ExperimentResult) -> NotMeasured:
    why = result.failure or "too few blocks: the time was up, or the machine too busy"
    return NotMeasured(name=result.experiment.name, intervention=result.experiment.intervention, why=why)


def _is_asleep(result: ExperimentResult) -> bool:
    return any(spec.get("by") == "sleep" for spec in result.experiment.arm)
