"""What a pattern is: one object, in one file, with all that anybody needs to know of it.

A pattern matches what was measured on the host (a run), what a trace shows of a device, or both. It says where in the
step it shows, how it weighs against the others, what its headline is, which experiments prove it, and what a person
can do by hand where no remedy can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import msgspec

from unstall.diagnose.thresholds import LEADS, Evidence
from unstall.records.report import Finding, NextStep
from unstall.records.speedup import ExpectedGain
from unstall.records.vocabulary import Confidence, KnownBy, Trait
from unstall.text.sanitize import sanitize_line, shorten
from unstall.text.units import percent, seconds
from unstall.threshold import Range

if TYPE_CHECKING:
    from unstall.diagnose.features import HostFeatures
    from unstall.diagnose.placing import Placed
    from unstall.records.measurements import Slowing
    from unstall.records.report import Culprit
    from unstall.records.run import Utilization
    from unstall.trace.features import TraceFeatures


_NAME_CELLS = 60


BY_REWRITING = "experts' versions leave 0 to 0.2 (zoo); how much of a stranger's code is needed at all nobody knows"
"""The reason for what remains where a person has to write the code anew."""


class UsualRemedy(NamedTuple):
    """What is usually done about a cause, and the share of the component's time that then remains.

    Less than nothing remains where a remedy also saves time elsewhere.
    """

    name: str
    remains: Range


@dataclass(frozen=True)
class Features:
    """What is known of a run: measured on the host, recorded on a device, or both."""

    host: HostFeatures | None = None
    device: TraceFeatures | None = None


class Pattern:
    """Base of all patterns. A new one sets ``name`` and gives ``on_host``, ``on_device`` or both."""

    name: ClassVar[str]
    """The name that reports print: "input-bound"."""
    brief: ClassVar[str]
    """The pattern in half a line, for the index of the documentation."""
    causes: ClassVar[tuple[str, ...]] = ()
    """The causes that its findings may name."""
    phases: ClassVar[tuple[str, ...]] = ()
    """The phases of a step that the pattern is about; empty when it is about none in particular."""
    headroom_is_of_phases: ClassVar[bool] = False
    """Its headroom is that of a step without the phases of its finding, and of nothing else."""
    hides: ClassVar[bool] = False
    """It may cost a step what none of its phases shows, and lead without a share in them."""
    residual: ClassVar[bool] = False
    """It is what remains when nothing else is in the way, so an experiment that frees something else outranks it."""
    useful: ClassVar[bool] = False
    """The time goes into the model's own work, so that only less of it helps."""
    can_be_freed: ClassVar[bool] = True
    """An experiment can make its component free: a stub, cached batches."""
    costs_time: ClassVar[bool] = True
    """It makes steps longer; what does not, ends the run."""
    takes_a_word: ClassVar[bool] = False
    """It is over with a word, so its advice is told with the verdict, whatever that is."""
    next_step: ClassVar[NextStep | None] = None
    """What a person should do next, where that is not to prove it by experiment."""
    doing: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Phase, and what a process does in it, for `unstall attach`: "waits for the next batch"."""
    device_uses: ClassVar[tuple[str, ...]] = ()
    """Uses of a device's time (:mod:`unstall.trace.regions`) that are this pattern where they are the largest."""
    keeps_verdict: ClassVar[bool] = False
    """It stays the verdict whatever experiments say of the step: it ends the run, or is about other ranks."""
    host_knows_who: ClassVar[bool] = False
    """The host's finding says more than a device shows: whose batches are late, which rank."""
    advice: ClassVar[str] = "make it cheaper, do it less often, or move it out of the step"
    """What to do where an experiment shows the pattern and observation has nothing to add."""
    by_hand: ClassVar[tuple[tuple[str | None, str], ...]] = ()
    """Cause, or None for any other, and what a person can do where no remedy can write it."""
    by_hand_from: ClassVar[float] = 1.1
    """Headroom from which that is worth a person's time."""
    usual_remedies: ClassVar[tuple[tuple[str | None, UsualRemedy], ...]] = ()
    """Cause, or None for any other, and what is usually done: the expected gain follows from it."""
    calibration: ClassVar[tuple[tuple[str | None, Evidence | None, Range], ...]] = ()
    """Cause and kind of evidence, or None for any other, and how many times the estimate the truth is.

    Of the gain over nothing, ceiling - 1, so that a ceiling of 1 stays 1. First guesses: `bench/accuracy.py` prints
    how many truths the intervals hold, by which these are to be fitted.
    """

    def on_host(self, host: HostFeatures) -> Finding | None:
        """The finding in a run as it was measured, or None when the numbers do not show the pattern."""
        return None

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """The finding in a trace of a device, or None when the numbers do not show the pattern."""
        return None

    def finding(
        self,
        *,
        headroom: float,
        evidence: Sequence[str],
        advice: Sequence[str],
        cause: str | None = None,
        culprit: Culprit | None = None,
        share: float | None = None,
        phases: tuple[str, ...] = (),
        headroom_known_by: KnownBy = "estimated",
        confidence: Confidence = "high",
        summary: str = "",
        condition: str = "",
        expected_gain: ExpectedGain | None = None,
    ) -> Finding:
        """A finding of this pattern; the fields are those of :class:`~unstall.records.report.Finding`."""
        return Finding(
            pattern=self.name,
            cause=cause,
            culprit=culprit,
            share=share,
            phases=phases,
            headroom=headroom,
            headroom_known_by=headroom_known_by,
            confidence=confidence,
            evidence=evidence,
            advice=advice,
            summary=summary,
            condition=condition,
            expected_gain=expected_gain,
            next_step=self.next_step,
            traits=self.traits,
        )

    @property
    def traits(self) -> tuple[Trait, ...]:
        """What views need to know of it."""
        facts: dict[Trait, bool] = {
            "useful": self.useful,
            "fixed": not self.can_be_freed,
            "untimed": not self.costs_time,
        }
        return tuple(trait for trait, holds in facts.items() if holds)

    def rank(self, finding: Finding, features: Features) -> float:
        """What the finding weighs against those of other patterns: its headroom, unless a rule says otherwise."""
        return finding.headroom

    def is_of_library(self, finding: Finding) -> bool:
        """Whether a library that holds the culprit can do something about it."""
        return not self.takes_a_word

    def may_lead(self, finding: Finding, features: Features) -> bool:
        """Whether it may be the verdict: the phases that it is about, if any, hold a part of the step."""
        host = features.host
        if host is None or features.device is not None or self.hides or not self.phases:
            return True
        return host.share(*(finding.phases or self.phases)) >= LEADS

    def ceiling_range(self, finding: Finding, host: HostFeatures) -> tuple[float, float]:
        """The lowest and the highest ceiling that the run's own measurements allow, before chance and calibration."""
        return finding.headroom, finding.headroom

    def takes_caches(self, host: HostFeatures) -> bool:
        """Whether what it is about runs in the main thread, whose other work is faster once it has gone."""
        return False

    def samples_of(self, finding: Finding, host: HostFeatures) -> Sequence[Placed]:
        """The main thread's samples of the component that the headroom is of: they tell which part is the culprit's.

        None where they cannot.
        """
        return host.blame.in_phase(*finding.phases) if self.headroom_is_of_phases else ()

    def remedy(self, finding: Finding, features: Features) -> UsualRemedy | None:
        """What is to be done in this run, where that is known better than for the cause in general."""
        return None

    def match(self, features: Features) -> Finding | None:
        """The finding, or None.

        A device's view comes first, for a host that runs ahead of its device sees the wrong phases. The host's
        culprit is kept: stack samples name the user's line, a trace the operator.
        """
        host = self.on_host(features.host) if features.host is not None else None
        if features.device is None or not self.sees_device:
            return host
        device = self.on_device(features.device)
        if device is None or host is None or host.culprit is None:
            return device
        evidence = [*device.evidence, *[line for line in host.evidence if line not in device.evidence][:1]]
        joined = msgspec.structs.replace(device, culprit=host.culprit, evidence=evidence)
        if not self.host_knows_who:
            return joined
        cause, advice = host.cause or device.cause, host.advice or device.advice
        return msgspec.structs.replace(joined, cause=cause, advice=advice, summary="")

    @property
    def sees_device(self) -> bool:
        """Whether a device's trace can show the pattern."""
        return type(self).on_device is not Pattern.on_device

    def condition(self, finding: Finding) -> str:
        """Under which the gain of the headline is to be had: "without it"."""
        return "without it" if finding.culprit is not None else ""

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """The middle of the headline: what takes the time. ``use`` is the run's."""
        return f"{part(finding)} goes into {name_of(finding.culprit) or self.name.replace('-', ' ')}"


def worth(finding: Finding) -> float:
    """What a finding would bring: its remedy's gain where one is known, else its headroom."""
    return finding.expected_gain.value if finding.expected_gain is not None else finding.headroom


def part(finding: Finding) -> str:
    """As "83 % of each step"; "each step" where the share is not known."""
    return f"{percent(finding.share)} of each step" if finding.share else "each step"


def of_step(share: float, taken_s: float) -> str:
    """As "83 % of a step, 41 ms": how a line of evidence begins."""
    return f"{percent(share)} of a step, {seconds(taken_s)}"


def grows_by(slowing: Slowing) -> str:
    """As "a step takes 12 % longer every 1,000 steps (95 %: 11 to 14 %)"."""
    rate, low, high = (percent(value) for value in (slowing.per_1000, slowing.low, slowing.high))
    return f"a step takes {rate} longer every 1,000 steps (95 %: {low} to {high})"


def name_of(culprit: Culprit | None) -> str:
    """The culprit's name, short and on one line; empty without a culprit."""
    return shorten(sanitize_line(culprit.name), _NAME_CELLS) if culprit is not None else ""


def at(culprit: Culprit | None, before: str = " in ") -> str:
    """The culprit's name with what goes before it; empty without a culprit."""
    return f"{before}{name_of(culprit)}" if culprit is not None else ""
