"""healthy: the machine does what it is for, by evidence of its own, and nothing that was found is worth fixing."""

from __future__ import annotations

from unstall.diagnose import health
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern
from unstall.diagnose.thresholds import BUSY_DEVICE, WORTH
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.text.units import percent
from unstall.trace.features import TraceFeatures

WHAT_IFS = ("data=0", "sync=0", "launch=0", "host=0", "copies=overlapped", "nccl=0")
"""What-ifs of a trace that would show that the device waits for something."""


class Healthy(Pattern):
    """The verdict where no other is worth more, and the run shows why: see :mod:`unstall.diagnose.health`."""

    name = "healthy"
    brief = "the model's math fills the step at a good rate, and nothing is worth fixing"
    residual = useful = True

    def on_host(self, host: HostFeatures) -> Finding | None:
        """The model's mathematics fills the step, at a rate that such layers reach."""
        if health.objections(host):
            return None
        assert host.efficiency is not None
        return self.finding(
            headroom=1.0,
            evidence=[
                f"{percent(host.model_s / host.step_s)} of a step is the model's own forward, backward and optimizer",
                f"its arithmetic runs at {percent(host.efficiency)} of this machine's peak",
            ],
            advice=["stop here: a faster machine, a smaller model or lower precision are what is left"],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """The device is busy, and no what-if of a faithful replay is worth much."""
        busy = device.shares["busy"]
        gains = {what_if: device.gain(what_if) for what_if in WHAT_IFS}
        best = max(gains, key=lambda name: gains[name])
        if gains[best] >= WORTH or busy < BUSY_DEVICE or not device.replay.faithful:
            return None
        flops = device.metrics.flops
        rate = [f"its arithmetic runs at {percent(flops.mfu)} of the listed peak"] if flops and flops.mfu else []
        return self.finding(
            summary=f"the device is busy {percent(busy)} of a step, and nothing that was found is worth fixing",
            headroom=gains[best],
            headroom_known_by="predicted",
            evidence=[
                f"the device is busy {percent(busy)} of a step; the best what-if is {best}, {gains[best]:.2f}×",
                *rate,
            ],
            advice=["stop here, or make the kernels themselves faster"],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """It stands where nothing is worth fixing."""
        return WORTH

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """That there is nothing to do."""
        return "nothing worth fixing was found"


PATTERN = Healthy()
