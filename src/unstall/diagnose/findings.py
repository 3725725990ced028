"""Match the patterns against what was measured, rank what they found, and say how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from unstall.diagnose import claims, source
from unstall.diagnose.blame import in_package
from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.patterns.base import Features, Pattern
from unstall.diagnose.thresholds import (
    BUSY_ELSEWHERE,
    FEW_SAMPLES,
    FEW_STEPS,
    MOSTLY_ELSEWHERE,
    UNSURE_SPREAD,
    VERY_FEW_STEPS,
    VERY_UNSURE_SPREAD,
)
from unstall.diagnose.vocabulary import TENSOR_CONSTRUCTORS
from unstall.records.measurements import Measurement
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import MODEL_PHASES, WITHOUT_CULPRIT
from unstall.text.units import percent

_OF_LISTS = "if that line makes a tensor of a list: torch reads lists item by item, so give it numpy.array(list)"


def findings(features: Features, use: Utilization) -> list[Finding]:
    """The verdict first, then the runners-up by what they weigh; one that blames nobody only where it is the verdict.

    ``use`` is the run's, for the sentences.
    """
    matches = ((pattern, pattern.match(features)) for pattern in all_patterns().values())
    weighed = [_weighed(pattern, finding, features, use) for pattern, finding in matches if finding is not None]
    weighed.sort(key=lambda entry: entry[0])
    first, *others = [finding for _, finding in weighed]
    first = _with_easy_advice(first, others)
    return [first, *(finding for finding in others if finding.pattern not in WITHOUT_CULPRIT)]


def _weighed(
    pattern: Pattern, matched: Finding, features: Features, use: Utilization
) -> tuple[tuple[bool, float], Finding]:
    """A finding as it is reported, and its place: what may lead first, then by weight.

    What was measured weighs: by how much ceilings of a kind are usually off says how to read one, and is no reason to
    prefer that kind.
    """
    finding = claims.claimed(_with_sentence(pattern, matched, features, use), pattern, features)
    as_measured = msgspec.structs.replace(finding, headroom=matched.headroom)
    return (not pattern.may_lead(finding, features), -pattern.rank(as_measured, features)), finding


def _with_sentence(pattern: Pattern, finding: Finding, features: Features, use: Utilization) -> Finding:
    """The finding with its sentence, no surer than the measurement allows, and with the package it is in."""
    confidence = finding.confidence
    finding = _with_known_cure(_in_package(pattern, finding, features))
    if features.host is not None and (features.device is None or not pattern.sees_device):
        lines, low = confidence_caveats(features.host.measurement)
        confidence = "low" if low else "medium" if lines and confidence == "high" else confidence
    summary = finding.summary or pattern.sentence(finding, use)
    condition = finding.condition or pattern.condition(finding)
    return msgspec.structs.replace(finding, confidence=confidence, summary=summary, condition=condition)


def _with_easy_advice(first: Finding, others: Sequence[Finding]) -> Finding:
    """The verdict with the advice of lesser findings that takes a word to follow."""
    easy = [finding for finding in others if all_patterns()[finding.pattern].takes_a_word]
    advice = [f"{finding.summary}; {line}" for finding in easy for line in finding.advice[:1]]
    return msgspec.structs.replace(first, advice=[*first.advice, *advice]) if advice else first


def _with_known_cure(finding: Finding) -> Finding:
    """The finding with what to do about the call on its culprit's line, where one of its kind is known to be slow."""
    culprit = finding.culprit
    if culprit is None or set(MODEL_PHASES).intersection(finding.phases):
        return finding
    called = {call.rpartition(".")[2] for call in source.calls_at(culprit.file, culprit.line)}
    if called.isdisjoint(TENSOR_CONSTRUCTORS):
        return finding
    return msgspec.structs.replace(finding, advice=[*finding.advice, _OF_LISTS])


def _in_package(pattern: Pattern, finding: Finding, features: Features) -> Finding:
    """The finding with the package of its culprit, if that is in a library, and what to do about one."""
    if finding.culprit is None or features.host is None:
        return finding
    culprit = in_package(finding.culprit, features.host.measurement.sites)
    if not culprit.package:
        return finding
    if not pattern.is_of_library(finding):
        return msgspec.structs.replace(finding, culprit=culprit)
    named = f"{culprit.package} {culprit.version}".rstrip()
    advice = f"it is in {named}: see whether a newer version changed it, report it there, or patch it in a checkout"
    return msgspec.structs.replace(finding, culprit=culprit, advice=[*finding.advice, advice])


def confidence_caveats(measurement: Measurement) -> tuple[list[str], bool]:
    """What makes the verdict less sure, one line each; and whether it is so much that confidence is low."""
    lines, low = [], False
    if measurement.steps < VERY_FEW_STEPS:
        lines.append(f"only {measurement.steps} steps were measured: too few to be sure")
        low = True
    elif measurement.steps < FEW_STEPS:
        lines.append(f"only {measurement.steps} steps were measured")
    if measurement.spread > UNSURE_SPREAD:
        lines.append(f"the steps vary: their mean is known to ± {percent(1.96 * measurement.spread)}")
        low = low or measurement.spread > VERY_UNSURE_SPREAD
    if measurement.other_cores > BUSY_ELSEWHERE:
        lines.append(f"other processes took {measurement.other_cores:.1f} of {measurement.cores:g} cores meanwhile")
        low = low or measurement.other_cores > MOSTLY_ELSEWHERE * measurement.cores
    if measurement.sampling_failure:
        inside = " (the program sampled itself: shares are less certain)" if measurement.samples else ""
        lines.append(f"no stacks from outside: {measurement.sampling_failure}{inside}")
    elif sum(sample.count for sample in measurement.samples) < FEW_SAMPLES:
        lines.append("few stack samples: the culprit is less certain than the pattern")
    if measurement.disturbed:
        lines.append("steps that overlap stack sampling had to be included: the others are too few, or all too short")
    return lines, low
