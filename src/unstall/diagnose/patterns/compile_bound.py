"""compile-bound: functions are compiled again in the steps that should only call them, or run uncompiled in them.

Compiling takes time in a step while it lasts. What torch.compile leaves behind may cost every step after it: a function
that it gave up runs as it was written, and one whose graph breaks goes through Python between its pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

from unstall.child.seams import jax, modules
from unstall.child.user_files import GENERATED
from unstall.diagnose import health
from unstall.diagnose.blame import line_culprit
from unstall.diagnose.compiled import explained, function_of
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, at, of_step, part
from unstall.diagnose.placing import Placed, count
from unstall.diagnose.thresholds import IN_UNCOMPILED, SEEN
from unstall.records.compiled import CompiledFrame
from unstall.records.measurements import SeamSite
from unstall.records.report import Culprit, Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import COMPILE, MODEL_PHASES
from unstall.text.units import seconds, times

_NAMED = 2
"""Reasons that are worth a line of evidence: the rest is in the report's list."""


class CompileBound(Pattern):
    """A compiled function meets shapes, types or values that it has not met before, or code that cannot be compiled."""

    name = "compile-bound"
    brief = "functions are compiled again in the loop, or run uncompiled in it"
    causes = ("recompilation", "given-up", "graph-break")
    phases = (COMPILE.name,)
    advice = "keep shapes, types and static arguments the same in every step: pad, or sort into a few lengths"
    by_hand = (
        ("graph-break", "move what breaks the graph out of the compiled function, or keep it in tensors"),
        ("given-up", "keep what changes from call to call out of the compiled function's attributes and arguments"),
        (None, "pad batches to a few lengths, and make the compiled function once, outside of the loop"),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time that the compiler says it took inside the steps, else by what runs uncompiled in them."""
        return self._compiling(host) or self._beside_graphs(host)

    def _compiling(self, host: HostFeatures) -> Finding | None:
        taken_s = host.phase_s(COMPILE.name)
        headroom = host.headroom_without(taken_s)
        if headroom < SEEN:
            return None
        share = host.share(COMPILE.name)
        evidence = [f"{of_step(share, taken_s)}, is tracing and compiling"]
        compiled = sorted(host.measurement.compiled, key=lambda function: -function.step_s)
        for function in compiled[:2]:
            evidence.append(
                f"{function.name} was compiled {function.count} times in the measured steps, "
                f"{seconds(function.step_s)} a step"
            )
        for frame in explained(host.measurement.compiled_frames):
            evidence += [f"{frame.function} was compiled again for {reason}" for reason in frame.reasons[:_NAMED]]
        sites = [site for site in host.sites(jax.CALL) if compiled and jax.CALL.member(site.seam) == compiled[0].name]
        caller = host.caller(jax.CALL, share=share) or host.caller(modules.FORWARD, share=share)
        return self.finding(
            cause="recompilation",
            culprit=line_culprit(sites[0], share=share) if sites else caller,
            share=share,
            phases=self.phases,
            headroom=headroom,
            evidence=evidence,
            advice=[self.advice, "make the compiled function once, outside of the loop"],
        )

    def _beside_graphs(self, host: HostFeatures) -> Finding | None:
        """What of the model's time is not in code that torch.compile wrote, and why."""
        samples = host.blame.in_phase(*MODEL_PHASES)
        frames = sorted(explained(host.measurement.compiled_frames), key=lambda frame: -count(_inside(frame, samples)))
        given_up = next((frame for frame in frames if frame.given_up), None)
        broken = next((frame for frame in frames if frame.breaks), None)
        outside = [placed for placed in samples if not _is_generated(placed)]
        if not outside or not (given_up or broken):
            return None
        uncompiled_s = host.model_s * count(outside) / count(samples)
        if given_up is not None and count(_inside(given_up, outside)) >= IN_UNCOMPILED * count(samples):
            return self._given_up(host, given_up, uncompiled_s)
        if broken is None or len(outside) == len(samples):
            return None  # by another backend than torch's own, whose code cannot be told from the rest
        pieces = sum(frame.graphs for frame in frames)
        return self._broken(host, broken, uncompiled_s * (1 - 1 / pieces))

    def _given_up(self, host: HostFeatures, frame: CompiledFrame, uncompiled_s: float) -> Finding:
        share = min(1.0, uncompiled_s / host.step_s)
        name, tries = frame.function, times(frame.compilations)
        return self.finding(
            summary=f"{name} runs uncompiled: torch.compile gave it up",
            cause="given-up",
            culprit=_culprit(frame, frame.line, share),
            share=share,
            headroom=1.0,  # what compiling it would gain, no run without it shows
            confidence="medium",
            evidence=[
                f"{of_step(share, uncompiled_s)}, is the model outside of compiled code",
                f"torch gave {name} up after it was compiled {tries}, for {frame.given_up}",
                *_broken_at(frame),
            ],
            advice=[
                "keep out of the compiled function what changes from call to call: a counter or a value of .item() "
                "in an attribute is compiled into it",
                "shapes that change: torch.compile(dynamic=True), or pad to a few lengths",
            ],
        )

    def _broken(self, host: HostFeatures, frame: CompiledFrame, taken_s: float) -> Finding | None:
        headroom = host.headroom_without(taken_s)
        if headroom < SEEN:
            return None
        share = min(1.0, taken_s / host.step_s)
        return self.finding(
            cause="graph-break",
            culprit=_culprit(frame, frame.breaks[0].line, share),
            share=share,
            headroom=headroom,
            confidence="medium",
            evidence=[
                f"{of_step(share, taken_s)}, is Python between the pieces of compiled code",
                *_broken_at(frame),
            ],
            advice=[
                "move what breaks the graph out of the compiled function: prints, .item(), branches on tensors' values",
                "torch.compile(fullgraph=True) raises at the first break, with torch's own hint",
            ],
        )

    def may_lead(self, finding: Finding, features: Features) -> bool:
        """What runs uncompiled is in the model's phases."""
        return finding.cause != "recompilation" or super().may_lead(finding, features)

    def rank(self, finding: Finding, features: Features) -> float:
        """What torch could not compile comes before all else that is said of the model, whose time it makes up."""
        host = features.host
        if finding.cause == "recompilation" or host is None:
            return finding.headroom
        return max(finding.headroom, health.before_model(host))

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the line that calls what is compiled, or at which its graph breaks."""
        if finding.cause == "graph-break":
            return f"{part(finding)} goes into Python between graphs of torch.compile, broken{at(finding.culprit)}"
        return f"{part(finding)} goes into compiling functions again{at(finding.culprit, ' for ')}"


def _is_generated(placed: Placed) -> bool:
    return any(GENERATED.search(frame.file) for frame in placed.sample.frames)


def _inside(frame: CompiledFrame, samples: Sequence[Placed]) -> list[Placed]:
    """The samples whose deepest function of the program's is this one."""
    function = function_of(frame)
    return [
        placed
        for placed in samples
        if placed.program and (placed.program[-1][0].file, placed.program[-1][1]) == (frame.file, function)
    ]


def _broken_at(frame: CompiledFrame) -> list[str]:
    """The breaks that are worth a line."""
    return [f"its graph breaks at line {broken.line}: {broken.reason}" for broken in frame.breaks[:_NAMED]]


def _culprit(frame: CompiledFrame, line: int, share: float) -> Culprit:
    return line_culprit(SeamSite(seam="", file=frame.file, function=frame.function, line=line), share)


PATTERN = CompileBound()
