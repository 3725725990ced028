"""callback-bound: logging, metrics, plots or checkpoints take much of the loop."""

from __future__ import annotations

from unstall.diagnose import vocabulary
from unstall.diagnose.blame import Placed, culprit
from unstall.diagnose.features import Features
from unstall.records.report import Finding
from unstall.text.units import percent, seconds

_ADVICE = {
    "metrics": "update running sums each step, and compute the metric over the whole history once an epoch",
    "plotting": "plot at the end of an epoch, or write the numbers and draw them later",
    "checkpoint": "save less often, or in the background (copy to the CPU, write from another thread)",
    "logging": "log every N steps, and buffer: no flush or fsync in the step",
}


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    taken_s = features.seconds.get("callback", 0.0)
    headroom = features.headroom_without(taken_s)
    if headroom < 1.05:
        return None
    samples = features.blame.in_phase("callback")
    cause = _cause(features, samples)
    phase = features.measurement.phase("callback")
    evidence = [
        f"{percent(taken_s / features.step_s)} of a step, {seconds(taken_s)} on average, is outside training: {cause}"
    ]
    for name, time_s in sorted(features.measurement.callbacks.items(), key=lambda item: -item[1])[:2]:
        if time_s > 0.05 * features.step_s:
            evidence.append(f"{name} takes {seconds(time_s)} a step")
    if phase and phase.blocked_s > 0.3 * taken_s:
        evidence.append(f"{percent(phase.blocked_s / taken_s)} of it is blocked, off the cores (disk or network)")
    if features.measurement.trend > 0.15:
        evidence.append(f"the step has grown by {percent(features.measurement.trend)} during the run")
    return Finding(
        pattern="callback-bound",
        cause=cause,
        culprit=culprit(samples, features.blame.total, "main"),
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="high",
        evidence=evidence,
        advice=[_ADVICE[cause]],
    )


def _cause(features: Features, samples: list[Placed]) -> str:
    """By what most samples say; by the seams' names when there are none."""
    votes: dict[str, float] = {}
    for placed in samples:
        files = [frame.file for frame in placed.sample.frames]
        words = " ".join(function.qualname for _, function in placed.user[1:] or placed.user)
        cause = vocabulary.callback_cause(files, words)
        votes[cause] = votes.get(cause, 0.0) + placed.count
    if not votes:
        for name, taken_s in features.measurement.callbacks.items():
            cause = vocabulary.callback_cause([name.replace(".", "/") + "/"], name)
            votes[cause] = votes.get(cause, 0.0) + taken_s
    return max(votes, key=lambda cause: votes[cause]) if votes else "logging"
