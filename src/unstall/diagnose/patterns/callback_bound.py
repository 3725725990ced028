"""callback-bound: logging, metrics, plots or checkpoints take much of the loop."""

from __future__ import annotations

from unstall.diagnose import vocabulary
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Pattern, name_of, of_step, part
from unstall.diagnose.placing import Placed
from unstall.diagnose.thresholds import BLOCKED, GROWING, NOTABLE_CALLBACK, SEEN
from unstall.records.report import Finding, Utilization
from unstall.text.units import percent, seconds

_ADVICE = {
    "metrics": "update running sums each step, and compute the metric over the whole history once an epoch",
    "plotting": "plot at the end of an epoch, or write the numbers and draw them later",
    "checkpoint": "save less often, or in the background (copy to the CPU, write from another thread)",
    "logging": "log every N steps, and buffer: no flush or fsync in the step",
}


class CallbackBound(Pattern):
    """What is called around training costs more than it should."""

    name = "callback-bound"
    brief = "logging, metrics, plots or checkpoints take much of the loop"
    causes = ("metrics", "logging", "plotting", "checkpoint")
    phases = ("callback",)
    advice = "do it every N steps, or in a thread of its own"
    by_hand = (
        ("checkpoint", "save less often, or copy the state and write it in a background thread"),
        (None, "do it less often, once an epoch, or in a background thread that gets copies"),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time in known callbacks, and in code that the samples show to be one."""
        taken_s = host.phase_s("callback")
        headroom = host.headroom_without(taken_s)
        if headroom < SEEN:
            return None
        samples = host.blame.in_phase("callback")
        cause = _cause(host, samples)
        phase = host.measurement.phase("callback")
        share = host.share("callback")
        evidence = [f"{of_step(share, taken_s)} on average, is outside training: {cause}"]
        for name, time_s in sorted(host.measurement.callbacks.items(), key=lambda item: -item[1])[:2]:
            if time_s > NOTABLE_CALLBACK * host.step_s:
                evidence.append(f"{name} takes {seconds(time_s)} a step")
        if phase and phase.blocked_s > BLOCKED * taken_s:
            evidence.append(f"{percent(phase.blocked_s / taken_s)} of it is blocked, off the cores (disk or network)")
        if host.measurement.trend > GROWING:
            evidence.append(f"the step has grown by {percent(host.measurement.trend)} during the run")
        return self.finding(
            cause=cause,
            culprit=host.blame.main_culprit(samples),
            share=share,
            phases=self.phases,
            headroom=headroom,
            evidence=evidence,
            advice=[_ADVICE[cause]],
        )

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the callback, or what callbacks are."""
        what = name_of(finding.culprit) or "logging, metrics, plots or checkpoints"
        return f"{part(finding)} goes into {what}"


def _cause(host: HostFeatures, samples: list[Placed]) -> str:
    """By what most samples say; by the seams' names when there are none."""
    votes: dict[str, float] = {}
    for placed in samples:
        files = [frame.file for frame in placed.sample.frames]
        words = " ".join(function.qualname for _, function in placed.user[1:] or placed.user)
        cause = vocabulary.callback_cause(files, words)
        votes[cause] = votes.get(cause, 0.0) + placed.count
    if not votes:
        for name, taken_s in host.measurement.callbacks.items():
            cause = vocabulary.callback_cause([name.replace(".", "/") + "/"], name)
            votes[cause] = votes.get(cause, 0.0) + taken_s
    return max(votes, key=lambda cause: votes[cause]) if votes else "logging"


PATTERN = CallbackBound()
