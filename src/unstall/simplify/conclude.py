"""From the outcomes of a study to the report: ceilings, experiments, and the verdict as the experiments leave it."""

from __future__ import annotations

import math

import msgspec

from unstall.records.report import Ceiling, Experiment, NotMeasured, Report, Study
from unstall.simplify import rest, verdict
from unstall.simplify.predicting import Predictor
from unstall.simplify.study import Findings
from unstall.simplify.trial import Outcome, Trial
from unstall.statistics import Ratio
from unstall.text.units import percent

_DEEPER = 1.1
_BLURRED = 0.3  # half of the interval of a sum of elasticities


def conclude(found: Findings, sandbox: str) -> Report:
    """The report of ``unstall simplify``: that of the first run, with what the experiments add and correct."""
    report = found.report
    if found.measurement is None:
        return msgspec.structs.replace(report, kind="simplify")
    predictor = Predictor(found.measured, found.timed)
    done = [one for one in found.outcomes if one.ratio is not None and one.ratio.blocks >= 2]
    base_s = _base_s(done) or found.measurement.step.mean
    waiting_s, taken_s = _three_arms(base_s, done)
    total, half = _elasticity_sum(done)
    study = Study(
        base_s=base_s,
        elasticity_sum=total,
        elasticity_ci95=(total - half, total + half) if total is not None else None,
        elasticity_says=_of_sum(total, half) if total is not None else "",
        waiting_s=waiting_s,
        taken_s=taken_s,
        data_batches_per_s=found.data_batches_per_s,
        failures=[_failure(one) for one in found.outcomes if one not in done],
        untried=[trial.name for trial in found.untried],
        deeper=_deeper(done),
        sandbox=sandbox,
        runs=found.runs,
    )
    findings, disagreements = verdict.restate(report, done, study)
    return msgspec.structs.replace(
        report,
        kind="simplify",
        verdict=findings[0],
        findings=findings,
        ceilings=_ceilings(found, done, base_s),
        experiments=[_experiment(one, predictor) for one in done],
        study=msgspec.structs.replace(study, disagreements=disagreements),
    )


def elasticity(outcome: Outcome) -> tuple[float, float, float] | None:
    """Of a delay: d ln(step) / d ln(component), and its 95 % interval; None for other trials."""
    ratio, share = outcome.ratio, outcome.trial.share
    if ratio is None or share is None:
        return None
    scale = math.log1p(share)
    low, high = interval(ratio)
    return -math.log(ratio.value) / scale, -math.log(high) / scale, -math.log(low) / scale


def _experiment(outcome: Outcome, predictor: Predictor) -> Experiment:
    ratio, trial = outcome.ratio, outcome.trial
    assert ratio is not None
    slope, predicted = elasticity(outcome), predictor.ratio(trial, outcome.base_phases)
    notes = [*outcome.notes]
    if predicted is not None and ratio.excludes(predicted) and ratio.value > predicted and trial.settings is None:
        notes += filter(None, [rest.told(outcome)])
    notes += [f"{outcome.disturbed} blocks were disturbed"] if outcome.disturbed else []
    return Experiment(
        name=trial.name,
        intervention=trial.intervention,
        ratio=ratio.value,
        ci95=interval(ratio),
        predicted_ratio=predicted,
        segments=4 * ratio.blocks,
        component=trial.component,
        conclusive=outcome.state == "measured",
        elasticity=slope[0] if slope else None,
        notes=notes,
    )


def interval(ratio: Ratio) -> tuple[float, float]:
    """The interval in numbers that JSON has: one that is open above ends at a million."""
    return max(ratio.low, 1e-6), min(ratio.high, 1e6)


def _base_s(done: list[Outcome]) -> float | None:
    """The step of the program as it is: the geometric mean over all blocks in which it ran."""
    values = [seconds for one in done if not one.trial.base for seconds in one.base_s]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _ceilings(found: Findings, done: list[Outcome], base_s: float) -> list[Ceiling]:
    ceilings = []
    for one in done:
        ratio = one.ratio
        if one.trial.component is None or one.trial.share is not None or ratio is None or one.state != "measured":
            continue
        low, high = interval(ratio)
        ceilings.append(
            Ceiling(
                component=f"without {one.trial.component}",
                steps_per_s=ratio.value / base_s,
                known_by="measured",
                ci95=(low / base_s, high / base_s),
                gap=max(0.0, 1 - 1 / ratio.value),
            )
        )
    loader = found.measurement.loader if found.measurement else None
    if found.data_batches_per_s and loader and loader.batches_per_step:
        alone = found.data_batches_per_s / loader.batches_per_step
        gap = max(0.0, 1 - 1 / (base_s * alone))
        ceilings.append(Ceiling(component="data alone", steps_per_s=alone, known_by="measured", gap=gap))
    measured = {ceiling.component for ceiling in ceilings}
    ceilings += [one for one in found.report.ceilings if one.component not in measured]
    return sorted(ceilings, key=lambda ceiling: -ceiling.steps_per_s)


def _failure(outcome: Outcome) -> NotMeasured:
    why = outcome.failure or "too few blocks: the time was up, or the machine too busy"
    return NotMeasured(name=outcome.trial.name, intervention=outcome.trial.intervention, why=why)


def _three_arms(base_s: float, done: list[Outcome]) -> tuple[float | None, float | None]:
    """Real, cached, and cached with placebos: seconds a step waited for, and lost to the workers' taking cores."""
    ratios = {one.trial.intervention: one.ratio for one in done if one.state == "measured"}
    cached, placebo = ratios.get("cached"), ratios.get("placebo")
    if cached is None or placebo is None:
        return None, None
    cached_s = base_s / cached.value
    burnt_s = cached_s / placebo.value
    return base_s - burnt_s, burnt_s - cached_s


def _elasticity_sum(done: list[Outcome]) -> tuple[float | None, float]:
    """The sum over the components, and half of its interval; None where fewer than two were slowed.

    A component that was slowed in two ways counts once, as it computes.
    """
    ordered = sorted(done, key=lambda one: not _asleep(one.trial))
    by_component = {one.trial.component: slope for one in ordered if (slope := elasticity(one)) is not None}
    slopes = list(by_component.values())
    if len(slopes) < 2:
        return None, 0.0
    total = sum(value for value, _, _ in slopes)
    half = math.sqrt(sum(((high - low) / 2) ** 2 for _, low, high in slopes))
    return total, half


def _asleep(trial: Trial) -> bool:
    return any(one.get("by") == "sleep" for one in trial.arm)


def _of_sum(total: float, half: float) -> str:
    """A step's time is homogeneous in the times of its parts: what a sum other than 1 means."""
    if half > _BLURRED:
        return "too uncertain to tell whether something is missing"
    if abs(total - 1) <= half:
        return "the components account for the step"
    if total < 1:
        return (
            f"{percent(1 - total)} of the step is in none of them: something that was not slowed, or a wait that "
            "lasts as long however slow they are"
        )
    return (
        "more than the step: one is part of another, or takes cores that the others need "
        "(a delay that sleeps, NAME=+20%:sleep, takes none)"
    )


def _deeper(done: list[Outcome]) -> list[str]:
    """What the interactions say: how much the second is worth, alone and once the first is gone."""
    alone = {str(one.trial.arm): one.ratio for one in done if not one.trial.base}
    lines = []
    for one in done:
        ratio = one.ratio
        if one.trial.intervention != "interaction" or ratio is None or one.state != "measured":
            continue
        before = alone.get(str(one.trial.arm))
        words = f"{one.trial.name}: {ratio.value:.2f}×"
        if before is not None:
            words += f", {before.value:.2f}× by itself"
        if ratio.low > _DEEPER:
            words += ": the next bottleneck"
        lines.append(words)
    return lines
