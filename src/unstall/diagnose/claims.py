"""What a finding promises: the ceiling, if its component took no time, and the gain to expect of a remedy.

A component with the share s of the step leaves the rest r = 1 - s, and its ceiling is 1/r: it explodes as s nears 1.
Of a culprit that has the part p of the component, the ceiling is 1/(r + (1 - p) s): what is not its own stays.
Four things make it unsure: chance in a share of stack samples, the variation of the steps, contention (the rest may be
faster once the component no longer takes its cores), and what no run can see, for which a calibration stands in. With a
remedy that leaves the share q of the component the step is r + q (1 - r) of what it was.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from unstall.benchmark.warm_caches import share_left
from unstall.diagnose.callers import functions_of
from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy
from unstall.diagnose.placing import count
from unstall.diagnose.thresholds import (
    LEAST_REST,
    MOVED,
    NARROW,
    NORMAL_95,
    UNCALIBRATED,
    WIDE,
    Evidence,
)
from unstall.records.report import Finding
from unstall.records.speedup import ExpectedGain, Speedup
from unstall.records.vocabulary import OTHER, WITHOUT_CULPRIT, Confidence, KnownBy

if TYPE_CHECKING:
    from unstall.diagnose.features import HostFeatures
    from unstall.threshold import Range
    from unstall.trace.features import TraceFeatures

_LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")


class Interval(NamedTuple):
    """A factor and the interval it lies in."""

    value: float
    low: float
    high: float


def claimed(finding: Finding, pattern: Pattern, features: Features) -> Finding:
    """The finding with its ceiling and expected gain; unchanged where there is nothing to gain, or a gain alone."""
    if finding.expected_gain is not None or not _promises(finding):
        return finding
    host, device = features.host, features.device
    if device is not None and pattern.sees_device:
        component = of_culprit = _of_replay(finding.headroom, device)
    elif host is not None:
        component, of_culprit = _of_run(finding, pattern, host)
    else:
        return finding
    ceiling = _speedup(of_culprit, finding.confidence, finding.headroom_known_by)
    gains = [
        _with_remedy(interval, remedy)
        for interval, remedy in (
            (component, pattern.remedy(finding, features)),
            # Who writes the culprit anew may cure what surrounds it, too.
            (of_culprit._replace(high=component.high), usual_remedy(finding, pattern)),
        )
        if remedy is not None
    ]
    return _with(finding, ceiling, max(gains, key=lambda gain: gain.value, default=None))


def measured(finding: Finding, value: float, low: float, high: float) -> Finding:
    """The finding with a ceiling that an experiment measured, and the usual remedy's gain below it."""
    interval = Interval(max(1.0, value), max(1.0, low), max(1.0, value, high))
    pattern = all_patterns().get(finding.pattern)
    ceiling, remedy = _speedup(interval, "high", "measured"), usual_remedy(finding, pattern) if pattern else None
    return _with(finding, ceiling, None if remedy is None else _with_remedy(interval, remedy))


def tried(finding: Finding, remedy: str, value: float, low: float, high: float) -> Finding:
    """The finding with the gain of a remedy that an experiment tried: none where that made it no faster."""
    gain = _gain(remedy, _speedup(Interval(value, low, max(value, high)), "high", "measured"))
    return msgspec.structs.replace(finding, expected_gain=gain)


def usual_remedy(finding: Finding, pattern: Pattern) -> UsualRemedy | None:
    """What is usually done about a cause; None where time is not the matter, or nothing is known to help."""
    remedies = dict(pattern.usual_remedies)
    return remedies.get(finding.cause) or remedies.get(None)


def _promises(finding: Finding) -> bool:
    return finding.pattern not in WITHOUT_CULPRIT and "untimed" not in finding.traits and finding.headroom > 1


def _with_remedy(ceiling: Interval, remedy: UsualRemedy) -> ExpectedGain:
    """What a remedy usually leaves of the component says no single figure: how somebody will write it is not known."""
    return _gain(remedy.name, _speedup(after(ceiling, remedy.remains), "low", "estimated"))


def _with(finding: Finding, ceiling: Speedup, gain: ExpectedGain | None) -> Finding:
    return msgspec.structs.replace(finding, headroom=ceiling.value, ceiling=ceiling, expected_gain=gain)


def after(ceiling: Interval, remains: Range) -> Interval:
    """The speed-up with a remedy that leaves this much of the component, at its best and at its worst."""

    def gain(of: float, left: float) -> float:
        rest = 1 / of
        return max(1.0, 1 / max(rest + left * (1 - rest), LEAST_REST))

    return Interval(
        gain(ceiling.value, remains.value), gain(ceiling.low, remains.high), gain(ceiling.high, remains.low)
    )


# ------------------------------------------------------------ where the interval comes from


def _of_run(finding: Finding, pattern: Pattern, host: HostFeatures) -> tuple[Interval, Interval]:
    """The ceilings of the component and of the culprit in it, in a run that was only watched."""
    low, high = pattern.ceiling_range(finding, host)
    evidence = evidence_of(finding, host)
    if evidence == "sampled":
        low, _ = by_chance(low, host.blame.total)
        _, high = by_chance(high, host.blame.total)
    half = math.exp(NORMAL_95 * host.measurement.spread)
    quiet = undisturbed(host)
    calibration = calibration_of(finding, pattern, evidence)
    component = Interval(finding.headroom, low / half, high * half / quiet)
    of_culprit = without(component, part_of_culprit(finding, pattern, host))
    takes_caches = evidence != "model" and pattern.takes_caches(host)  # the model knows of them

    def fitted(interval: Interval) -> Interval:
        warm = _warmed(interval, host) if takes_caches else interval
        off = (calibration.value, calibration.low, calibration.high)
        return Interval(*(calibrated(ceiling, times) for ceiling, times in zip(warm, off)))

    return fitted(component), fitted(of_culprit)


def _warmed(interval: Interval, host: HostFeatures) -> Interval:
    """The ceilings where what is left runs on the caches that the component has taken."""
    step_s, refetch_s = host.step_s, host.measurement.refetch_s
    return Interval(*(ceiling / share_left(step_s, step_s / ceiling, refetch_s) for ceiling in interval))


def part_of_culprit(finding: Finding, pattern: Pattern, host: HostFeatures) -> Interval:
    """The culprit's part of the component, by the samples; all of it where they do not tell."""
    culprit, samples = finding.culprit, pattern.samples_of(finding, host)
    if culprit is None or culprit.where != "main":
        return Interval(1.0, 1.0, 1.0)
    held = count(placed for placed in samples if (culprit.file, culprit.function) in functions_of(placed))
    if not held:
        return Interval(1.0, 1.0, 1.0)
    total = count(samples)
    return Interval(held / total, *wilson(held / total, total))


def without(component: Interval, part: Interval) -> Interval:
    """The ceiling of a part of a component, from that of the component."""

    def ceiling(of: float, share: float) -> float:
        return 1 / max(1 - share * (1 - 1 / of), LEAST_REST) if of > 1 else 1.0

    return Interval(*map(ceiling, component, part))


def replayed(remedy: str, gain: float, device: TraceFeatures) -> ExpectedGain:
    """The gain of a change that the replay of a trace was asked for."""
    return _gain(remedy, _speedup(_of_replay(gain, device), "high" if device.replay.faithful else "low", "predicted"))


def between(remedy: str, low: float, high: float, device: TraceFeatures) -> ExpectedGain:
    """The gain of a change that the replay of a trace was asked for at its worst and at its best."""
    worst, best = _of_replay(low, device), _of_replay(high, device)
    interval = Interval(math.sqrt(low * high), worst.low, best.high)
    return _gain(remedy, _speedup(interval, "medium" if device.replay.faithful else "low", "predicted"))


def _of_replay(gain: float, device: TraceFeatures) -> Interval:
    """What a what-if on a trace gives: off by as much as the replay of the trace itself."""
    calibration = UNCALIBRATED["replay"]
    off = 1 + abs(device.replay.error)
    return Interval(gain, calibrated(gain / off, calibration.low), calibrated(gain * off, calibration.high))


def evidence_of(finding: Finding, host: HostFeatures) -> Evidence:
    """What the finding's share rests on: timers only where samples moved little of it from one phase to another."""
    if finding.headroom_known_by == "predicted":
        return "model"
    if not finding.phases and (host.python_in_forward or host.acting_s):
        return "sampled"
    phases = finding.phases or (OTHER.name,)
    timed_s = host.measurement.phase_s(*phases)
    moved_s = abs(sum(host.attributed.get(phase, 0.0) for phase in phases) - timed_s)
    return "timed" if moved_s <= MOVED * timed_s else "sampled"


def by_chance(ceiling: float, samples: int) -> tuple[float, float]:
    """The 95 % interval of 1/(1 - s) where the share s is one of so many samples: the rest is, too."""
    if not samples:
        return 1.0, 1 / LEAST_REST
    low, high = wilson(1 / ceiling, samples)
    return 1 / min(1.0, high), 1 / max(LEAST_REST, low)


def wilson(share: float, samples: int) -> tuple[float, float]:
    """The 95 % interval of a share of so many samples, which does not end at nothing where none of them was of it.

    Wilson's interval of a binomial's parameter: JASA 22(158), 1927.
    """
    z2 = NORMAL_95**2
    middle = (share + z2 / (2 * samples)) / (1 + z2 / samples)
    half = NORMAL_95 / (1 + z2 / samples) * math.sqrt(share * (1 - share) / samples + z2 / (4 * samples**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def undisturbed(host: HostFeatures) -> float:
    """Share of its time that the rest of the step takes once this program's own processes leave it their cores.

    What other programs add to the wait for a core is taken out of the step already.
    """
    measurement = host.measurement
    workers = measurement.worker_cpu_s / measurement.step.mean
    own = workers / (workers + measurement.other_cores) if workers else 0.0
    return 1 - own * min(measurement.run_delay or 0.0, 0.9)


def calibration_of(finding: Finding, pattern: Pattern, evidence: Evidence) -> Range:
    """The pattern's entry that fits best: by cause and evidence, by cause, by evidence, for all; else by evidence."""
    entries = {(cause, kind): calibration for cause, kind, calibration in pattern.calibration}
    for key in ((finding.cause, evidence), (finding.cause, None), (None, evidence), (None, None)):
        if key in entries:
            return entries[key]
    return UNCALIBRATED[evidence]


def calibrated(ceiling: float, times: float) -> float:
    """A ceiling whose gain over nothing is so many times the estimate."""
    return min(max(1.0, 1 + (ceiling - 1) * times), 1 / LEAST_REST)


def _gain(remedy: str, speedup: Speedup) -> ExpectedGain:
    return ExpectedGain(remedy=remedy, **msgspec.structs.asdict(speedup))


def _speedup(interval: Interval, most: Confidence, known_by: KnownBy) -> Speedup:
    value = min(max(1.0, interval.value), 1 / LEAST_REST)
    low, high = max(1.0, min(interval.low, value)), min(max(interval.high, value), 1 / LEAST_REST)
    width = high / low
    by_width: Confidence = "high" if width <= NARROW else "medium" if width <= WIDE else "low"
    confidence = min(by_width, most, key=_LEVELS.index)
    return Speedup(value=value, low=low, high=high, confidence=confidence, known_by=known_by)
