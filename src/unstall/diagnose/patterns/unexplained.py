"""unexplained: no pattern is worth fixing as far as this run shows, and the run does not show that it is healthy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from unstall.diagnose import health, page_faults
from unstall.diagnose.blame import hotspots
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, of_step
from unstall.diagnose.patterns.healthy import WHAT_IFS
from unstall.diagnose.thresholds import SUSPECTS, WORTH
from unstall.records.report import Culprit, Finding, Hotspot
from unstall.records.run import Utilization
from unstall.records.vocabulary import MODEL_PHASES, VALIDATION
from unstall.text.sanitize import sanitize_line
from unstall.text.units import percent
from unstall.trace.features import TraceFeatures


class Unexplained(Pattern):
    """The counterpart of healthy: which phase and which functions to look at next, and no promise of a gain."""

    name = "unexplained"
    brief = "nothing known stalls it, but it is not shown to be healthy either"
    residual = True

    def on_host(self, host: HostFeatures) -> Finding | None:
        """What speaks against a healthy run; the phase that is the largest and the functions that fill it."""
        objections = health.objections(host)
        if not objections:
            return None
        # A model that takes most of the step is what to look at, but where it does what it should.
        is_model = host.model_s >= sum(host.seconds.values()) / 2 and bool(health.objections_to_model(host))
        phase = health.largest_phase(host, besides=() if is_model else MODEL_PHASES)
        besides = "" if phase == health.largest_phase(host) else " besides the model's math"
        suspects = [spot for spot in hotspots(host.blame) if spot.phase == phase and spot.process == "main"]
        suspects = suspects[: int(SUSPECTS)]
        evidence = [
            f"{of_step(host.share(phase), host.phase_s(phase))}, is {phase}, the largest part{besides}",
            *objections,
        ]
        if suspects:
            evidence.append(f"most samples of it are in {', '.join(map(_place, suspects))}")
        return self.finding(
            share=host.share(phase),
            phases=(phase,),
            culprit=_culprit(suspects),
            headroom=1.0,
            confidence="medium",
            evidence=evidence,
            advice=[
                *([page_faults.ADVICE] if page_faults.evidence(host.measurement) else []),
                _advice(phase, suspects),
                "measure what each part costs: unstall simplify",
            ],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """A device that idles, or a gain that the replay predicts, with no pattern that accounts for it."""
        if self._is_healthy(device):
            return None
        busy = device.shares["busy"]
        gains = {what_if: device.gain(what_if) for what_if in WHAT_IFS}
        best = max(gains, key=lambda name: gains[name])
        evidence = [f"the device is busy {percent(busy)} of a step; the best what-if is {best}, {gains[best]:.2f}×"]
        if not device.replay.faithful:
            evidence.append(
                f"the replay of the trace is off by {percent(abs(device.replay.error))}: what-ifs say little"
            )
        return self.finding(
            summary=f"the device is busy {percent(busy)} of a step; what it waits for else is not explained",
            headroom=1.0,
            confidence="medium" if device.replay.faithful else "low",
            evidence=evidence,
            advice=["look at the longest gaps on the device's timeline, and at what the host does meanwhile"],
        )

    def _is_healthy(self, device: TraceFeatures) -> bool:
        from unstall.diagnose.patterns.healthy import PATTERN as healthy

        return healthy.on_device(device) is not None

    def rank(self, finding: Finding, features: Features) -> float:
        """As healthy, in whose place it stands."""
        return WORTH

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """What to look at, and that no more is known."""
        if not finding.phases:
            return "nothing worth fixing was found, which does not show that it is healthy"
        return (
            f"no known stall accounts for it, and it is not shown to be healthy; look at {finding.phases[0]} first, "
            f"{percent(finding.share or 0.0)} of each step"
        )


def _place(spot: Hotspot) -> str:
    return (
        f"{sanitize_line(spot.function)} ({sanitize_line(PurePath(spot.file).name)}:{spot.line}, {percent(spot.share)})"
    )


def _culprit(suspects: Sequence[Hotspot]) -> Culprit | None:
    """The function that most samples of the phase are in: what to look at, not who is to blame."""
    if not suspects:
        return None
    first = suspects[0]
    return Culprit(function=first.function, file=first.file, line=first.line, share=first.share, where=first.where)


def _advice(phase: str, suspects: Sequence[Hotspot]) -> str:
    named = f", {sanitize_line(suspects[0].function)} first" if suspects else ""
    if phase == VALIDATION.name:
        return f"look at what it does{named}: a policy's rollouts take batched observations; validation can be rarer"
    return f"look at what {phase} does{named}: is it needed in every step, and for how many items at once?"


PATTERN = Unexplained()
