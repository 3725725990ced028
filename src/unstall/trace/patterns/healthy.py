"""healthy: the device is kept busy, and nothing that was found is worth fixing."""

from __future__ import annotations

from unstall.records.report import Finding
from unstall.text.units import percent
from unstall.trace.look import Look
from unstall.trace.thresholds import WORTH_GAIN

_ALL = ("data=0", "sync=0", "launch=0", "host=0", "copies=overlapped", "nccl=0")


def match(look: Look) -> Finding | None:
    """Always a finding: it is the verdict where no other is worth more."""
    left = {what_if: look.gain(what_if) for what_if in _ALL}
    best = max(left, key=lambda name: left[name])
    return Finding(
        pattern="healthy",
        headroom=left[best],
        headroom_known_by="predicted",
        confidence="high" if left[best] < WORTH_GAIN.value and look.replay.faithful else "medium",
        evidence=[
            f"the device is busy {percent(look.shares['busy'])} of a step; the best what-if is {best}, "
            f"{left[best]:.2f}× faster"
        ],
        advice=["stop here, or make the kernels themselves faster"],
    )
