"""The verdict after the experiments: the same findings with what was measured, and another where they say so."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from unstall.child.experiments.interventions.cached import CachedIntervention
from unstall.child.experiments.interventions.checks import ChecksIntervention
from unstall.diagnose import claims
from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.patterns.base import Pattern
from unstall.records.report import Culprit, Finding, Hotspot, Report
from unstall.records.vocabulary import UNEXPLAINED, Confidence, PatternName
from unstall.simplify import plan, registry, thresholds
from unstall.simplify.experiment import ExperimentResult
from unstall.statistics import Ratio

_HOST = "host-bound"
_SAID_WITH = frozenset({CachedIntervention.name, ChecksIntervention.name, "workers", "threads"})
"""Experiments whose names are things that the program has, not what is done to it."""


@dataclass(frozen=True)
class WaitingSplit:
    """The seconds a step that the loader costs, told apart by three arms: real, cached, cached with placebos."""

    base_s: float
    waiting_s: float
    """Waiting for batches."""
    contention_s: float
    """Lost because the loader's workers take cores."""

    def __str__(self) -> str:
        return (
            f"of each step of {self.base_s * 1e3:.3g} ms, {max(0.0, self.waiting_s) * 1e3:.3g} ms are waiting for data "
            f"and {max(0.0, self.contention_s) * 1e3:.3g} ms are lost because the loader's workers take the cores"
        )


def restate(
    report: Report, results: list[ExperimentResult], split: WaitingSplit | None
) -> tuple[list[Finding], list[str]]:
    """The findings, the verdict first; and where observation and experiment disagree, both and why."""
    measured = {result.experiment.component: result for result in results if _may_be_blamed(result)}
    disagreements: list[str] = []
    findings = [_with_measurement(finding, measured, disagreements) for finding in report.findings]
    best = max(measured.values(), key=lambda result: _ratio(result).value, default=None)
    if best is not None and _ratio(best).low > thresholds.WORTH:
        findings = _take_over(report, findings, best, split, disagreements)
    first, *others = _order([_with_remedy(finding, results) for finding in findings])
    if split is not None and first.pattern == CachedIntervention.proves:
        first = msgspec.structs.replace(first, evidence=[*first.evidence, str(split)])
    return [_worded(finding, report) for finding in (first, *others)], disagreements


def _worded(finding: Finding, report: Report) -> Finding:
    """The finding with the sentence that fits what was measured; a device's keeps its own."""
    if report.trace is not None and finding.summary:
        return finding
    pattern = _of(finding)
    if finding.share is None and pattern.phases:  # an experiment found it, observation had not
        share = min(1.0, sum(phase.share for phase in report.phases if phase.name in pattern.phases))
        finding = msgspec.structs.replace(finding, share=share, phases=pattern.phases)
    summary = pattern.sentence(finding, report.utilization)
    return msgspec.structs.replace(finding, summary=summary, condition=pattern.condition(finding))


def _may_be_blamed(result: ExperimentResult) -> bool:
    """Whether the result tells what the program gains when something other than its model is free."""
    experiment, component = result.experiment, result.experiment.component
    if component is None or experiment.share is not None or experiment.base or experiment.settings:
        return False
    kind = registry.components().get(component)
    is_model = component.endswith(".forward") or (kind is not None and kind.is_training)
    return not is_model and result.state == "measured"


def _with_measurement(
    finding: Finding, measured: dict[str | None, ExperimentResult], disagreements: list[str]
) -> Finding:
    """A finding with its headroom measured, if its component was free in an experiment."""
    # A setting is not at the culprit: that is where it tells most.
    names = [finding.culprit.function] if finding.culprit and not _of(finding).takes_a_word else []
    names += [name for name, kind in registry.components().items() if kind.proves == finding.pattern]
    result = next((measured[name] for name in names if name in measured), None)
    if result is None or _of(finding).keeps_verdict:
        return finding
    ratio, estimate = _ratio(result), finding.headroom
    apart = abs(math.log(estimate / max(ratio.value, 1e-9)))
    ceiling = finding.ceiling
    expected = ceiling is not None and ceiling.low <= ratio.high and ratio.low <= ceiling.high
    if apart > math.log(thresholds.DISAGREEMENT) and not ratio.low <= estimate <= ratio.high and not expected:
        disagreements.append(_disagreement(finding, ratio))
    measured_finding = msgspec.structs.replace(
        finding,
        headroom_known_by="measured",
        confidence=_confidence(ratio),
        evidence=[_sentence(result), *finding.evidence],
    )
    return claims.measured(measured_finding, ratio.value, ratio.low, ratio.high)


def _with_remedy(finding: Finding, results: list[ExperimentResult]) -> Finding:
    """A finding with the gain measured, if its remedy is a setting that was tried.

    Where it is one remedy of several, it must surely gain more than is surely expected of the other.
    """
    measured = [result for result in results if result.state == "measured"]
    tried = [result for result in measured if plan.is_a_remedy(result.experiment, finding)]
    best = max(tried, key=lambda result: _ratio(result).value, default=None)
    if best is None:
        return finding
    ratio, expected = _ratio(best), finding.expected_gain
    if not plan.is_the_remedy(best.experiment, finding) and ratio.low <= (expected.low if expected else 1.0):
        return finding
    evidence = dict.fromkeys([_sentence(best), *finding.evidence])  # it may be there, as the ceiling's
    tried_one = msgspec.structs.replace(finding, evidence=[*evidence])
    return claims.tried(tried_one, best.experiment.name, ratio.value, ratio.low, ratio.high)


def _take_over(
    report: Report,
    findings: list[Finding],
    best: ExperimentResult,
    split: WaitingSplit | None,
    disagreements: list[str],
) -> list[Finding]:
    """The costliest component gets the verdict where observation gave it to one that is worth less."""
    first, ratio = findings[0], _ratio(best)
    first_ratio = first.headroom if first.headroom_known_by == "measured" else 1.0
    outranked = _of(first).residual or ratio.value >= thresholds.TAKES_OVER * first_ratio
    pattern, culprit = _pattern(report, best)
    if _of(first).keeps_verdict or not outranked or pattern == first.pattern:
        return findings
    same = next((finding for finding in findings if finding.pattern == pattern), None)
    verdict = all_patterns()[pattern].finding(
        headroom=ratio.value,
        headroom_known_by="measured",
        confidence=_confidence(ratio),
        evidence=[_sentence(best), *(same.evidence if same else [])],
        advice=same.advice if same else [all_patterns()[pattern].advice],
        cause=same.cause if same else ("transform" if culprit and pattern == CachedIntervention.proves else None),
        culprit=culprit or (same.culprit if same else None) or _worker_culprit(report, pattern),
    )
    verdict = claims.measured(verdict, ratio.value, ratio.low, ratio.high)
    details = f"; {split}" if pattern == CachedIntervention.proves and split is not None else ""
    disagreements.append(
        f"observation says {first.pattern} ({_estimated(first)}); the experiment says {pattern}: "
        f"{_sentence(best)}{details}"
    )
    return [verdict, *(finding for finding in findings if finding is not same)]


def _order(findings: list[Finding]) -> list[Finding]:
    """A first finding that turned out to be worth nothing gives way to one that is; the rest by headroom."""
    first, rest = findings[0], sorted(findings[1:], key=lambda finding: -finding.headroom)
    measured = first.headroom_known_by == "measured" and not _of(first).keeps_verdict
    if measured and first.headroom < thresholds.WORTH:
        for better in rest:
            if better.headroom >= thresholds.WORTH or better.pattern == UNEXPLAINED or _of(better).useful:
                return [better, first, *(finding for finding in rest if finding is not better)]
    return [first, *rest]


def _pattern(report: Report, best: ExperimentResult) -> tuple[PatternName, Culprit | None]:
    """The pattern that a component belongs to, and the culprit if it is a function of the user's."""
    component = best.experiment.component or ""
    kinds = registry.components()
    if component in kinds:
        return _as_pattern(kinds[component].proves), None
    for finding in report.findings:
        if finding.culprit is not None and finding.culprit.function == component and not _of(finding).residual:
            return finding.pattern, finding.culprit
    spot = next((spot for spot in report.hotspots if spot.function == component), None)
    if spot is None:
        return _HOST, None
    proven = {kind.phase: kind.proves for kind in kinds.values() if kind.phase}
    pattern = CachedIntervention.proves if spot.process == "worker" else proven.get(spot.phase, "")
    return _as_pattern(pattern), _culprit(spot)


def _as_pattern(proves: str) -> PatternName:
    """What an intervention proves; work on the host without a pattern of its own otherwise."""
    return proves if proves in all_patterns() else _HOST


def _of(finding: Finding) -> Pattern:
    """The pattern of a finding; one that is not installed here has no rules of its own."""
    return all_patterns().get(finding.pattern, all_patterns()[_HOST])


def _worker_culprit(report: Report, pattern: PatternName) -> Culprit | None:
    """Of a data pipeline that observation did not blame: what its workers do most."""
    if pattern != CachedIntervention.proves:
        return None
    spot = next((spot for spot in report.hotspots if spot.process == "worker"), None)
    return _culprit(spot) if spot is not None else None


def _culprit(spot: Hotspot) -> Culprit:
    return Culprit(
        function=spot.function,
        file=spot.file,
        line=spot.line,
        share=spot.share,
        where=spot.where,
        via=spot.via,
        package=spot.package,
        version=spot.version,
        called_by=spot.called_by,
    )


def _sentence(result: ExperimentResult) -> str:
    """What an experiment found."""
    ratio, name = _ratio(result), result.experiment.name
    condition = f"with {name}" if result.experiment.intervention in _SAID_WITH else name
    return (
        f"by experiment: {condition} the program is {ratio.value:.2f}× as fast "
        f"(95 % interval {ratio.low:.2f} to {ratio.high:.2f}, {ratio.blocks} blocks)"
    )


def _estimated(finding: Finding) -> str:
    """What observation promised: the ceiling and its interval."""
    ceiling = finding.ceiling
    if ceiling is None:
        return f"{finding.headroom:.2f}×"
    return f"ceiling {ceiling.value:.2f}×, {ceiling.low:.2f} to {ceiling.high:.2f}"


def _disagreement(finding: Finding, ratio: Ratio) -> str:
    direction, why = (
        ("more", "it also takes cores, or time elsewhere, that its own share does not show")
        if ratio.value > finding.headroom
        else ("less", "part of its time is hidden behind other work, or others then wait in its place")
    )
    return (
        f"observation estimates {finding.headroom:.2f}× for {finding.pattern}, the experiment gives {ratio.value:.2f}× "
        f"({ratio.low:.2f} to {ratio.high:.2f}): it is worth {direction} than its share of the step, so {why}"
    )


def _confidence(ratio: Ratio) -> Confidence:
    return "high" if ratio.half_width < thresholds.HIGH_CONFIDENCE else "medium"


def _ratio(result: ExperimentResult) -> Ratio:
    """The ratio of a result that was measured."""
    assert result.ratio is not None
    return result.ratio
