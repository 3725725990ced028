"""debugging-bound: checks that help to find errors were left on, and take a part of each step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from unstall.diagnose import health, source
from unstall.diagnose.debugging_aids import AIDS, ANOMALY, DebuggingAid, aid_of
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, at, of_step, part
from unstall.diagnose.placing import Placed, count
from unstall.diagnose.thresholds import (
    CHECKING_GRADIENTS,
    DEBUGGING_LEADS,
    MOSTLY_NOTING,
    NOTED_OP_S,
    SEEN,
)
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import BACKWARD, FORWARD
from unstall.threshold import Range


class DebuggingBound(Pattern):
    """Libraries check what they are given, or record where it came from, in every step."""

    name = "debugging-bound"
    brief = "checks that help to find errors take time in every step"
    causes = tuple(aid.cause for aid in AIDS)
    takes_a_word = True
    advice = "turn it off once the program works"
    by_hand = tuple((aid.cause, aid.advice) for aid in AIDS)
    calibration = (
        ("anomaly-detection", None, Range(0.25, 0.8, 2.0, "by the number of operators; five models: 0.3 to 1.7")),
        (
            None,
            None,
            Range(0.8, 1.8, 3.5, "stacks of many short calls are lost, more than of others; one program: 2.3"),
        ),
    )
    usual_remedies = ((None, UsualRemedy("turning it off", Range(0.0, 0.0, 0.1, "nothing of it is left"))),)

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the stack samples in the functions that do it; of anomaly detection, by the number of operators too."""
        samples = _samples(host)
        found = _seconds(host, samples)
        taken_s = sum(found.values())
        headroom = host.headroom_without(taken_s)
        if headroom < SEEN:
            return None
        aids = sorted(found, key=lambda aid: -found[aid])
        evidence = []
        for aid in aids:
            evidence.append(f"{of_step(found[aid] / host.step_s, found[aid])}, is {aid.what}")
            evidence += _switched_on(aid, host)
        return self.finding(
            cause=aids[0].cause,
            culprit=host.blame.main_culprit(samples[aids[0]]) if aids[0] in samples else host.blame.model_culprit(),
            share=taken_s / host.step_s,
            headroom=headroom,
            evidence=evidence,
            advice=[aid.advice for aid in aids],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """A good part of a step comes before what the model itself costs: it is off with a word."""
        host = features.host
        if host is None or (finding.share or 0.0) < DEBUGGING_LEADS:
            return finding.headroom
        return max(finding.headroom, health.before_model(host))

    def condition(self, finding: Finding) -> str:
        """What is to be turned off."""
        return "with it turned off"

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names what checks, and whose calls it looks at most."""
        what = next((aid.what for aid in AIDS if aid.cause == finding.cause), "checks for errors")
        return f"{part(finding)} goes into {what.partition(',')[0]}{at(finding.culprit)}"


def _samples(host: HostFeatures) -> dict[DebuggingAid, list[Placed]]:
    """The main thread's samples in each aid that has any."""
    found = defaultdict(list)
    for placed in host.blame.main:
        aid = aid_of(placed)
        if aid is not None:
            found[aid].append(placed)
    return dict(found)


def _seconds(host: HostFeatures, samples: Mapping[DebuggingAid, list[Placed]]) -> dict[DebuggingAid, float]:
    """Seconds a step that each aid takes, about."""
    sample_s = host.step_s / max(host.blame.total, 1)
    found = {aid: sample_s * count(of_aid) for aid, of_aid in samples.items()}
    if host.measurement.model.anomaly:
        found[ANOMALY] = max(_anomaly_s(host), found.get(ANOMALY, 0.0))
    return found


def _anomaly_s(host: HostFeatures) -> float:
    """Most of it is in no Python function: C++ asks for the stack of each operator, and looks at each gradient."""
    operators = sum(line.calls * line.per_step for line in host.measurement.operators)
    noting_s = min(operators * NOTED_OP_S, MOSTLY_NOTING * host.phase_s(FORWARD.name))
    return noting_s + CHECKING_GRADIENTS * host.phase_s(BACKWARD.name)


def _switched_on(aid: DebuggingAid, host: HostFeatures) -> list[str]:
    """Where the program turns it on, one line; none where that is not seen."""
    if not aid.switched_by:
        return []
    files = dict.fromkeys(frame.file for placed in host.blame.main for frame, _ in placed.program)
    lines = ((file, line) for file in files for name in aid.switched_by for line in source.lines_calling(file, name))
    return [f"it is turned on at {Path(file).name}:{line}" for file, line in lines][:1]


PATTERN = DebuggingBound()
