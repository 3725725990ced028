"""idle: a server that waits for requests most of the time. What it does meanwhile could be done more often."""

from __future__ import annotations

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Pattern, at, part
from unstall.diagnose.thresholds import MOSTLY_IDLE
from unstall.records.report import Finding, NextStep
from unstall.records.run import Utilization
from unstall.records.vocabulary import IDLE
from unstall.text.units import percent, seconds


class Idle(Pattern):
    """Nobody asks the server for more."""

    name = "idle"
    brief = "a server that waits for requests most of the time"
    can_be_freed = False
    next_step = NextStep(label="with more clients at once:")
    causes = ("requests",)
    phases = (IDLE.name,)
    advice = "send more requests at once, or give the server less of the machine"
    by_hand = ((None, "measure it under the load that it is for: more clients at once, or a load generator"),)

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time in which it has no request."""
        share = host.share(IDLE.name)
        if share < MOSTLY_IDLE:
            return None
        idle_s = host.phase_s(IDLE.name)
        return self.finding(
            cause="requests",
            share=share,
            phases=self.phases,
            headroom=host.headroom_without(idle_s),
            evidence=[f"{percent(share)} of a step, {seconds(idle_s)}, lies between two requests"],
            advice=[
                "send more requests at once to see what it can do: with this load, it is the clients that set the pace"
            ],
        )

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """The middle of the headline."""
        return f"{part(finding)} waits for requests{at(finding.culprit)}"


PATTERN = Idle()
