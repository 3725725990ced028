"""The verdict after the experiments: the same findings with what was measured, and another where they say so."""

from __future__ import annotations

import math

import msgspec

from unstall.records.report import Culprit, Finding, Hotspot, Report, Study
from unstall.records.vocabulary import PatternName
from unstall.simplify.trial import Outcome
from unstall.statistics import Ratio

_WORTH = 1.18  # as for the verdict of `run`: less is not worth a person's time
_BETTER = 1.15  # by so much another component must be worth more to take the verdict over
_APART = 1.25  # between an estimate and a measurement: worth a word
_RESIDUAL: tuple[PatternName, ...] = ("compute-bound", "overhead-bound", "healthy")
_KEPT: tuple[PatternName, ...] = ("memory-growth", "straggler")  # whatever the step costs
_KIND_PATTERNS: dict[str, PatternName] = {
    "data": "input-bound",
    "env": "environment-bound",
    "callbacks": "callback-bound",
    "validation": "callback-bound",
    "collectives": "communication-bound",
}
_PATTERN_KINDS: dict[str, tuple[str, ...]] = {
    "input-bound": ("data",),
    "environment-bound": ("env",),
    "callback-bound": ("callbacks", "validation"),
    "communication-bound": ("collectives",),
}
_PHASE_PATTERNS: dict[str, PatternName] = {
    "data_wait": "input-bound",
    "env": "environment-bound",
    "callback": "callback-bound",
    "validation": "callback-bound",
    "comm": "communication-bound",
}
_ADVICE: dict[PatternName, str] = {
    "input-bound": "make the batches cheaper: `unstall data` shows each stage",
    "environment-bound": "make the environment's step cheaper, or step several at once",
    "callback-bound": "do it every N steps, or in a thread of its own",
    "communication-bound": "fewer, larger collectives, or overlap them with the computation",
    "host-bound": "move it to array operations, out of the step, or into loader workers",
}


def restate(report: Report, done: list[Outcome], study: Study) -> tuple[list[Finding], list[str]]:
    """The findings, the verdict first, and where observation and experiment disagree, in words."""
    measured = {one.trial.component: one for one in done if _frees(one)}
    disagreements: list[str] = []
    findings = [_with_measurement(finding, measured, disagreements) for finding in report.findings]
    best = max(measured.values(), key=_value, default=None)
    if best is not None and _low(best) > _WORTH:
        findings = _take_over(report, findings, best, study, disagreements)
    first, *others = _order(findings)
    if study.taken_s is not None and study.waiting_s is not None and first.pattern == "input-bound":
        first = msgspec.structs.replace(first, evidence=[*first.evidence, _split(study)])
    return [first, *others], disagreements


def _frees(outcome: Outcome) -> bool:
    """Whether the outcome tells what the program gains when something other than its model is free."""
    trial = outcome.trial
    model = trial.component in ("optimizer", "backward") or (trial.component or "").endswith(".forward")
    free = trial.component is not None and trial.share is None and not trial.base and not trial.settings
    return free and not model and trial.intervention != "sleep" and outcome.state == "measured"


def _with_measurement(finding: Finding, measured: dict[str | None, Outcome], disagreements: list[str]) -> Finding:
    """A finding with its headroom measured, if its component was free in a trial."""
    function = finding.culprit.function if finding.culprit else None
    outcome = measured.get(function)
    for kind in _PATTERN_KINDS.get(finding.pattern, ()):
        outcome = outcome or measured.get(kind)
    ratio = outcome.ratio if outcome else None
    if outcome is None or ratio is None or finding.pattern in _KEPT:
        return finding
    estimate = finding.headroom
    if abs(math.log(estimate / max(ratio.value, 1e-9))) > math.log(_APART) and not ratio.low <= estimate <= ratio.high:
        disagreements.append(_disagreement(finding, outcome, ratio))
    return msgspec.structs.replace(
        finding,
        headroom=max(1.0, ratio.value),
        headroom_known_by="measured",
        confidence="high" if ratio.half_width < 0.15 else "medium",
        evidence=[_sentence(outcome, ratio), *finding.evidence],
    )


def _take_over(
    report: Report, findings: list[Finding], best: Outcome, study: Study, disagreements: list[str]
) -> list[Finding]:
    """The costliest component gets the verdict where observation gave it to one that is worth less."""
    first = findings[0]
    ratio = best.ratio
    assert ratio is not None
    if first.pattern in _KEPT:
        return findings
    known = first.headroom if first.headroom_known_by == "measured" else 1.0
    residual = first.pattern in _RESIDUAL
    if not residual and ratio.value < _BETTER * known:
        return findings
    pattern, culprit = _pattern(report, best)
    if pattern == first.pattern:
        return findings
    same = next((finding for finding in findings if finding.pattern == pattern), None)
    others = [finding for finding in findings if finding is not same]
    made = Finding(
        pattern=pattern,
        headroom=ratio.value,
        headroom_known_by="measured",
        confidence="high" if ratio.half_width < 0.15 else "medium",
        evidence=[_sentence(best, ratio), *(same.evidence if same else [])],
        advice=same.advice if same else [_ADVICE.get(pattern, _ADVICE["host-bound"])],
        cause=same.cause if same else ("transform" if culprit and pattern == "input-bound" else None),
        culprit=culprit or (same.culprit if same else None) or _worker_culprit(report, pattern),
    )
    disagreements.append(
        f"observation says {first.pattern} ({first.headroom:.2f}× at most); the experiment says {pattern}: "
        f"{_sentence(best, ratio)}" + (f"; {_split(study)}" if pattern == "input-bound" and study.taken_s else "")
    )
    return [made, *others]


def _order(findings: list[Finding]) -> list[Finding]:
    """A first finding that turned out to be worth nothing gives way to one that is; the rest by headroom."""
    first, rest = findings[0], sorted(findings[1:], key=lambda finding: -finding.headroom)
    gone = first.headroom_known_by == "measured" and first.headroom < _WORTH and first.pattern not in _KEPT
    if gone:
        better = [one for one in rest if one.headroom >= _WORTH or one.pattern in ("compute-bound", "healthy")]
        if better:
            return [better[0], first, *(one for one in rest if one is not better[0])]
    return [first, *rest]


def _pattern(report: Report, best: Outcome) -> tuple[PatternName, Culprit | None]:
    """The pattern that a component belongs to, and the culprit if it is a function of the user's."""
    component = best.trial.component or ""
    if component in _KIND_PATTERNS:
        return _KIND_PATTERNS[component], None
    for finding in report.findings:
        if finding.culprit is not None and finding.culprit.function == component and finding.pattern not in _RESIDUAL:
            return finding.pattern, finding.culprit
    spot = next((spot for spot in report.hotspots if spot.function == component), None)
    if spot is None:
        return "host-bound", None
    pattern = "input-bound" if spot.process == "worker" else _PHASE_PATTERNS.get(spot.phase, "host-bound")
    return pattern, _culprit(spot)


def _worker_culprit(report: Report, pattern: PatternName) -> Culprit | None:
    """Of a data pipeline that observation did not blame: what its workers do most."""
    if pattern != "input-bound":
        return None
    spot = next((spot for spot in report.hotspots if spot.process == "worker"), None)
    return _culprit(spot) if spot is not None else None


def _culprit(spot: Hotspot) -> Culprit:
    return Culprit(
        function=spot.function, file=spot.file, line=spot.line, share=spot.share, where=spot.where, via=spot.via
    )


def _sentence(outcome: Outcome, ratio: Ratio) -> str:
    """What an experiment found."""
    how = "with" if outcome.trial.name.startswith("cached") else ""
    words = f"{how} {outcome.trial.name}".strip()
    return (
        f"by experiment: {words} the program is {ratio.value:.2f}× as fast "
        f"(95 % interval {ratio.low:.2f} to {ratio.high:.2f}, {ratio.blocks} blocks)"
    )


def _disagreement(finding: Finding, outcome: Outcome, ratio: Ratio) -> str:
    more = "more" if ratio.value > finding.headroom else "less"
    why = (
        "it also takes cores, or time elsewhere, that its own share does not show"
        if more == "more"
        else "part of its time is hidden behind other work, or others then wait in its place"
    )
    return (
        f"observation estimates {finding.headroom:.2f}× for {finding.pattern}, the experiment gives {ratio.value:.2f}× "
        f"({ratio.low:.2f} to {ratio.high:.2f}): it is worth {more} than its share of the step, so {why}"
    )


def _split(study: Study) -> str:
    """The three arms in a sentence."""
    assert study.waiting_s is not None and study.taken_s is not None
    base = study.base_s
    return (
        f"of each step of {base * 1e3:.3g} ms, {max(0.0, study.waiting_s) * 1e3:.3g} ms are waiting for data and "
        f"{max(0.0, study.taken_s) * 1e3:.3g} ms are lost because the loader's workers take the cores"
    )


def _value(outcome: Outcome) -> float:
    return outcome.ratio.value if outcome.ratio else 0.0


def _low(outcome: Outcome) -> float:
    return outcome.ratio.low if outcome.ratio else 0.0
