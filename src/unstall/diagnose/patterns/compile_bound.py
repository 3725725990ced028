"""compile-bound: functions are traced and compiled again and again, in the steps that should only call them."""

from __future__ import annotations

from unstall.child.seams import jax, modules
from unstall.diagnose.blame import line_culprit
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Pattern, at, of_step, part
from unstall.diagnose.thresholds import SEEN
from unstall.records.report import Finding, Utilization
from unstall.text.units import seconds


class CompileBound(Pattern):
    """A compiled function meets shapes, types or static arguments that it has not met before."""

    name = "compile-bound"
    brief = "functions are compiled again in the loop"
    causes = ("recompilation",)
    phases = ("compile",)
    advice = "keep shapes, types and static arguments the same in every step: pad, or sort into a few lengths"
    by_hand = ((None, "pad batches to a few lengths, and make the compiled function once, outside of the loop"),)

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time that the compiler says it took, inside the steps."""
        taken_s = host.phase_s("compile")
        headroom = host.headroom_without(taken_s)
        if headroom < SEEN:
            return None
        share = host.share("compile")
        evidence = [f"{of_step(share, taken_s)}, is tracing and compiling"]
        compiled = sorted(host.measurement.compiled, key=lambda function: -function.step_s)
        for function in compiled[:2]:
            evidence.append(
                f"{function.name} was compiled {function.count} times in the measured steps, "
                f"{seconds(function.step_s)} a step"
            )
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

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the line that calls what is compiled."""
        return f"{part(finding)} goes into compiling functions again{at(finding.culprit, ' for ')}"


PATTERN = CompileBound()
