"""healthy: nothing that a remedy could give back is worth fixing."""

from __future__ import annotations

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern
from unstall.diagnose.thresholds import WORTH
from unstall.records.report import Finding, Utilization
from unstall.text.units import percent
from unstall.trace.features import TraceFeatures

_ALL = ("data=0", "sync=0", "launch=0", "host=0", "copies=overlapped", "nccl=0")


class Healthy(Pattern):
    """Always a finding: it is the verdict where no other is worth more."""

    name = "healthy"
    brief = "what is left is not worth fixing"
    residual = True

    def on_host(self, host: HostFeatures) -> Finding:
        """The model's mathematics is what is left."""
        evidence = [
            f"{percent(host.model_s / host.step_s)} of a step is the model's own forward, backward and optimizer"
        ]
        if host.efficiency is not None:
            evidence.append(f"its arithmetic runs at {percent(host.efficiency)} of this machine's peak")
        return self.finding(
            headroom=1.0,
            evidence=evidence,
            advice=["nothing to fix here: a faster machine, a smaller model or lower precision are what is left"],
        )

    def on_device(self, device: TraceFeatures) -> Finding:
        """No what-if of the replay is worth much."""
        left = {what_if: device.gain(what_if) for what_if in _ALL}
        best = max(left, key=lambda name: left[name])
        busy = percent(device.shares["busy"])
        return self.finding(
            summary=f"the device is busy {busy} of a step, and nothing that was found is worth fixing",
            headroom=left[best],
            headroom_known_by="predicted",
            confidence="high" if left[best] < WORTH and device.replay.faithful else "medium",
            evidence=[f"the device is busy {busy} of a step; the best what-if is {best}, {left[best]:.2f}× faster"],
            advice=["stop here, or make the kernels themselves faster"],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """It stands where nothing is worth fixing."""
        return WORTH

    def condition(self, finding: Finding) -> str:
        """The gain is what is left."""
        return "is left"

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """That there is nothing to do."""
        return "nothing worth fixing was found"


PATTERN = Healthy()
