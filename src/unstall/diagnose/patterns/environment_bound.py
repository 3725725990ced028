"""environment-bound: reinforcement learning that waits for its environment."""

from __future__ import annotations

from unstall.child.seams import environments
from unstall.diagnose.blame import culprit
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import BY_REWRITING, Pattern, UsualRemedy, at, part
from unstall.diagnose.thresholds import MOST, SEEN, SPARE_CORE
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import ENV, FORWARD
from unstall.text.units import percent, seconds
from unstall.threshold import Range


class EnvironmentBound(Pattern):
    """Stepping the environment, or acting in one at a time, sets the pace."""

    name = "environment-bound"
    brief = "stepping the reinforcement-learning environment, or acting in one at a time"
    doing = ((ENV.name, "steps the environment"),)
    causes = ("env", "batching")
    phases = (ENV.name,)
    headroom_is_of_phases = True
    advice = "make the environment's step cheaper, or step several at once"
    by_hand = ((None, "write it with array operations, or step several environments at once"),)
    calibration = ((None, None, Range(0.8, 1.05, 1.5, "zoo: 1.0 to 1.2 of two; held out 1.1")),)
    usual_remedies = (
        (
            "batching",
            UsualRemedy(
                "a vector of 16 environments",
                Range(
                    -0.85, 0.15, 0.5, "1/16 of the overhead; the environment's own calls are shared out too: zoo -0.8"
                ),
            ),
        ),
        (None, UsualRemedy("a cheaper environment", Range(0.0, 0.2, 0.7, BY_REWRITING))),
    )

    def takes_caches(self, host: HostFeatures) -> bool:
        """Its phase is none of the model's."""
        return True

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time in ``step`` and ``reset``, or in calling the policy for every single observation."""
        env_s = host.phase_s(ENV.name)
        headroom = host.headroom_without(env_s)
        measured = host.measurement
        if measured.kind != "env" and not env_s:
            return None
        single = measured.observations == 1 and measured.kind == "env"
        acting = host.phase_s(FORWARD.name) + host.acting_s
        # One environment at a time: calling the policy is paid for every single step.
        batching = single and env_s < acting and acting > MOST * (host.step_s - host.model_s)
        if batching:
            headroom = host.headroom_without(acting)
        if headroom < SEEN:
            return None
        samples = host.blame.in_phase(ENV.name)
        blamed = host.blame.main_culprit(samples)
        if host.worker_samples() and blamed is not None and _waits(host):
            blamed = culprit(host.worker_samples(), host.worker_total, "worker") or blamed
        if batching or blamed is None:
            blamed = host.caller(environments.STEP, share=host.share(ENV.name)) or blamed
        share = min(1.0, acting / host.step_s) if batching else host.share(ENV.name)
        inside = f"{percent(host.share('env'))} of an environment step's time, {seconds(env_s)}, is in the environment"
        acting_alone = f"{percent(share)} of each step, {seconds(acting)}, is acting on one observation at a time"
        return self.finding(
            cause="batching" if batching else "env",
            culprit=blamed,
            share=share,
            phases=() if batching else self.phases,
            headroom=headroom,
            evidence=[acting_alone, inside] if batching else [inside],
            advice=_advice(host, batching),
        )

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the environment, or that there is one alone."""
        if finding.cause == "batching":
            return f"{part(finding)} goes into acting on one observation at a time{at(finding.culprit)}"
        return f"{part(finding)} goes into stepping the environment{at(finding.culprit)}"


def _waits(host: HostFeatures) -> bool:
    phase = host.measurement.phase(ENV.name)
    return bool(phase and phase.blocked_s > MOST * phase.mean_s)


def _advice(host: HostFeatures, batching: bool) -> list[str]:
    measured = host.measurement
    spare = host.spare_cores
    if batching:
        return ["step many environments at once: gymnasium.make_vec(..., num_envs=16), one policy call for all of them"]
    advice = ["make the environment's step cheaper: whole-array operations instead of Python loops"]
    if measured.observations == 1:
        advice.append("or run several environments as a vector, so that the policy is called once for all of them")
    if spare > SPARE_CORE:
        advice.append(
            f"{spare:.1f} of {measured.cores:g} cores are idle: AsyncVectorEnv steps environments in processes"
        )
    return advice


PATTERN = EnvironmentBound()
