"""Run the patterns, rank what they found, and say how sure that is."""

from __future__ import annotations

from unstall.diagnose.features import Features, build
from unstall.diagnose.patterns import all_patterns
from unstall.records.measurements import Measurement
from unstall.records.report import Finding
from unstall.text.units import percent

WORTH = 1.18
"""Headroom from which a finding is worth a person's time; below it a run is healthy."""

_OUTRANKS_GROWTH = 2.0  # a stall must cost this much to come before a run that will die of its memory
_RESIDUAL = ("compute-bound", "overhead-bound")
_FEW_STEPS, _VERY_FEW_STEPS = 20, 8
_BUSY_ELSEWHERE = 0.5  # cores
_FEW_SAMPLES = 60


def findings(measurement: Measurement) -> tuple[Features, list[Finding]]:
    """The verdict first, then the runners-up by headroom."""
    features = build(measurement)
    matched = [found for match in all_patterns().values() if (found := match(features)) is not None]
    matched.sort(key=lambda found: -_rank(found, features))
    for found in matched:
        _qualify(found, features)
    return features, matched


def _rank(found: Finding, features: Features) -> float:
    """What a finding weighs against the others: its headroom, but for three rules.

    Growing memory ends the run, so it comes before any stall that costs less than a factor of two. What the model
    itself costs is what is left when nothing else is in its way. And healthy stands where nothing is worth fixing.
    """
    if found.pattern == "memory-growth":
        return _OUTRANKS_GROWTH
    if found.pattern == "healthy":
        return WORTH
    if found.pattern == "straggler":
        return found.headroom * 1.2  # its excess is also in its own phase
    if found.pattern in _RESIDUAL:
        most = 0.999 * (_OUTRANKS_GROWTH if features.model_s > 0.5 * features.step_s else WORTH)
        return min(found.headroom, most)
    return found.headroom


def doubts(measurement: Measurement) -> tuple[list[str], bool]:
    """What makes the verdict less sure, in plain lines; and whether it is so much that confidence is low."""
    lines, low = [], False
    if measurement.steps < _VERY_FEW_STEPS:
        lines.append(f"only {measurement.steps} steps were measured: too few to be sure")
        low = True
    elif measurement.steps < _FEW_STEPS:
        lines.append(f"only {measurement.steps} steps were measured")
    if measurement.spread > 0.15:
        lines.append(f"the steps vary: their mean is known to ± {percent(1.96 * measurement.spread)}")
        low = low or measurement.spread > 0.3
    if measurement.other_cores > _BUSY_ELSEWHERE:
        lines.append(f"other processes took {measurement.other_cores:.1f} of {measurement.cores:g} cores meanwhile")
        low = low or measurement.other_cores > 0.4 * measurement.cores
    if measurement.sampling_failure:
        inside = " (the program sampled itself: shares are less sure)" if measurement.samples else ""
        lines.append(f"no stacks from outside: {measurement.sampling_failure}{inside}")
    elif sum(sample.count for sample in measurement.samples) < _FEW_SAMPLES:
        lines.append("few stack samples: the culprit is less sure than the pattern")
    if measurement.disturbed:
        lines.append("the run was so short that steps count in which stacks were sampled")
    return lines, low


def _qualify(found: Finding, features: Features) -> None:
    lines, low = doubts(features.measurement)
    if low:
        found.confidence = "low"
    elif lines and found.confidence == "high":
        found.confidence = "medium"
