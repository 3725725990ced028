"""startup-bound: one function holds most of a run before its first step."""

from __future__ import annotations

import math

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, at
from unstall.diagnose.thresholds import SET_UP_LEADS
from unstall.records.measurements import Measurement
from unstall.records.report import Finding, NextStep
from unstall.records.run import Utilization
from unstall.text.units import factor, percent, seconds


class StartupBound(Pattern):
    """What is made before the loop takes longer than the training itself.

    Only where the program ended by itself: of a run that was cut short nobody knows how long its loop would take.
    """

    name = "startup-bound"
    brief = "one function holds most of the run before its first step"
    causes = ("set-up",)
    costs_time = False
    """Of a step, that is."""
    keeps_verdict = True  # experiments are of steps
    next_step = NextStep(label="do less before the loop, then:")
    advice = "keep what is made before the loop for the next run, or make it as the loop asks for it"
    by_hand = ((None, advice),)
    by_hand_from = 1.0

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the stacks that were seen before the first step, and the length of the whole run."""
        run_s, holder = host.measurement.run_s, host.set_up
        if run_s is None or holder is None or holder.culprit.function == "<module>":
            return None
        share = min(holder.seconds / run_s, 1.0)
        if share < SET_UP_LEADS:
            return None
        loop_s = _loop_s(host.measurement)
        without_s = run_s - holder.seconds
        return self.finding(
            cause="set-up",
            culprit=holder.culprit,
            share=share,
            headroom=1.0,  # a step takes as long without it
            evidence=[
                f"{seconds(holder.seconds)} of {seconds(run_s)}, before the first step; "
                f"all steps take {seconds(loop_s)}",
                f"without it the run would take {seconds(without_s)}, {factor(run_s / without_s)} as fast",
                "a training of more steps gains less of it",
            ],
            advice=[
                "do it for whole arrays or tables at once, not item by item",
                "keep what it makes in a file for the next run, named after what it is made of",
                "or make it as the loop asks for it, in the loader's workers",
            ],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """What the whole run would gain, though a stall in the steps gains no run so much as it gains a step.

        Where all steps together take less, no stall in them can gain the run as much.
        """
        host = features.host
        assert host is not None and host.measurement.run_s is not None
        share = finding.share or 0.0
        if _loop_s(host.measurement) < share * host.measurement.run_s:
            return math.inf
        return 1 / max(1 - share, 0.01)

    def condition(self, finding: Finding) -> str:
        """None: steps are as fast without it."""
        return ""

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """How much of the run it takes."""
        return f"{percent(finding.share or 0.0)} of the run is spent before its first step{at(finding.culprit)}"


def _loop_s(measurement: Measurement) -> float:
    """Seconds that all steps took."""
    return measurement.total_steps * measurement.step.mean


PATTERN = StartupBound()
