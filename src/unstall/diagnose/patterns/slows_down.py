"""slows-down: a step takes longer the more steps were made, because something that grows is gone through again.

Or because an optimizer's numbers become subnormal, over which a processor takes many times longer.
"""

from __future__ import annotations

import msgspec

from unstall.diagnose import source
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, at, grows_by
from unstall.diagnose.positions import HOST_PLACES
from unstall.diagnose.thresholds import MOST, SUBNORMAL
from unstall.records.measurements import GrowingObject
from unstall.records.report import Culprit, Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import OPTIMIZER, OTHER
from unstall.text.units import percent, seconds
from unstall.threshold import Range

SUBNORMALS = "subnormals"
_FLUSH = "take subnormal numbers for zeros: torch.set_flush_denormal(True), before anything is computed"
_GROWING_ADVICE = (
    "go through what is new only: keep running figures, or a bounded window such as deque(maxlen=...)",
    "keep the parts of a tensor or an array in a list, and join them once, at the end",
    "look things up in a set or dict, which takes as long for a million entries as for ten",
    "do what needs the whole history once an epoch, or at the end",
)
_SUBNORMALS_ADVICE = (
    _FLUSH,
    "update only the rows that a batch uses: sparse=True of nn.Embedding, with torch.optim.SparseAdam",
)


class SlowsDown(Pattern):
    """What a step costs depends on how many went before."""

    name = "slows-down"
    brief = "a step takes longer the more steps were made"
    causes = ("history", SUBNORMALS)
    keeps_verdict = True  # an experiment is too short to see what a long run comes to
    advice = "go through what is new only: running figures, a bounded window, a set or dict in place of a list"
    by_hand = (
        (None, "keep running figures, or a bounded window, in place of all that went before"),
        (SUBNORMALS, _FLUSH),
    )
    usual_remedies = (
        (SUBNORMALS, UsualRemedy("subnormal numbers as zeros", Range(0.0, 0.05, 0.3, "one program: 0"))),
        (None, UsualRemedy("work that does not grow", Range(0.0, 0.05, 0.5, "zoo: 0; what is new is still done"))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the trend of the steps, and by the stacks that later steps have more of."""
        slowing = host.measurement.slowing
        if slowing is None:
            return None
        share = 1 - 2 * slowing.begin_s / (slowing.begin_s + slowing.end_s)  # of the mean step, halfway up the line
        grown = host.blame.grown_culprit(slowing)
        culprit = grown or host.blame.main_culprit(host.blame.in_phase(*_places(slowing.phase)))
        if culprit is not None:
            culprit = msgspec.structs.replace(culprit, share=share)
        subnormal = host.measurement.memory.subnormal
        is_subnormal = slowing.phase == OPTIMIZER.name and subnormal >= SUBNORMAL
        container = None if is_subnormal else _container(host, culprit)
        evidence = [
            grows_by(slowing),
            f"from {seconds(slowing.begin_s)} at first to {seconds(slowing.end_s)}, mostly in {slowing.phase}",
        ]
        if is_subnormal:
            evidence.append(f"{percent(subnormal)} of what the optimizer keeps is subnormal: closer to 0 than 1.2e-38")
        if container is not None:
            evidence.append(
                f"{container.path} ({container.kind}) grows with it, by {container.len_per_step:.3g} entries a step"
            )
        return self.finding(
            summary=f"a step takes {percent(slowing.per_1000)} longer every 1,000 steps{at(culprit)}",
            cause=SUBNORMALS if is_subnormal else "history" if container else None,
            culprit=culprit,
            share=share,
            headroom=host.headroom_without(share * host.step_s),
            confidence="high" if grown else "medium",
            evidence=evidence,
            advice=[*(_SUBNORMALS_ADVICE if is_subnormal else _GROWING_ADVICE)],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """What it comes to by the end of the run, for it goes on; a graph that grows ends the run before that."""
        host = features.host
        if host is None or host.measurement.slowing is None:
            return finding.headroom
        if any(entry.graph_per_step > 0 for entry in host.measurement.memory.growing):
            return finding.headroom
        slowing = host.measurement.slowing
        growth = slowing.end_s / slowing.begin_s
        if slowing.end_s - slowing.begin_s < MOST * host.measurement.phase_s(slowing.phase):
            return growth
        # That it grows says more than that it is long, however that is counted.
        return max(growth, 1.001 * host.headroom_without(_at_most_s(host, slowing.phase)))

    def condition(self, finding: Finding) -> str:
        """The first steps show it."""
        return "if every step took as long as the first"

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """The function that it is in; a run's own finding says the rate as well."""
        return f"a step takes longer the more steps were made{at(finding.culprit)}"


def _at_most_s(host: HostFeatures, phase: str) -> float:
    """Seconds a step that a finding about this phase can claim: as timed or as attributed, and what goes with it."""
    in_modules = host.python_in_forward if phase == OTHER.name else 0.0
    return max(host.measurement.phase_s(phase), host.phase_s(phase) + in_modules) + host.contended_s


def _places(phase: str) -> tuple[str, ...]:
    """Of the samples in a phase."""
    return HOST_PLACES if phase == OTHER.name else (phase,)


def _container(host: HostFeatures, culprit: Culprit | None) -> GrowingObject | None:
    """What the program keeps and adds to: what the culprit's code names, else what grows most."""
    growing = [entry for entry in host.measurement.memory.growing if entry.len_per_step > 0]
    if culprit is not None:
        function = source.function_at(culprit.file, culprit.line, culprit.function.rpartition(".")[2])
        code = "".join(source.lines_of(culprit.file)[function.first_line - 1 : function.last_line])
        named = (entry for entry in growing if entry.path.rpartition(".")[2] in code)
        growing = [*named, *growing]
    return next(iter(growing), None)


PATTERN = SlowsDown()
