"""environment-bound: reinforcement learning that waits for its environment."""

from __future__ import annotations

from unstall.diagnose.blame import culprit, line_culprit
from unstall.diagnose.features import Features
from unstall.records.report import Finding
from unstall.text.units import percent, seconds

_MOST = 0.5


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    env_s = features.seconds.get("env", 0.0)
    headroom = features.headroom_without(env_s)
    measured = features.measurement
    if measured.kind != "env" and not env_s:
        return None
    single = measured.envs == 1 and measured.kind == "env"
    acting = features.seconds.get("forward", 0.0) + features.acting_s
    # One environment at a time: calling the policy is paid for every single step.
    batching = single and env_s < acting and acting > _MOST * (features.step_s - features.model_s)
    if batching:
        # With k environments in a vector the acting cost is shared by k steps; a quarter of it stays.
        headroom = features.headroom_without(0.75 * acting)
    if headroom < 1.05:
        return None
    samples = features.blame.in_phase("env")
    blamed = culprit(samples, features.blame.total, "main")
    if features.worker_samples() and blamed is not None and _waits(features):
        blamed = culprit(features.worker_samples(), features.worker_total, "worker") or blamed
    if batching or blamed is None:
        sites = [site for site in measured.sites if site.seam == "~env.step"]
        blamed = line_culprit(sites[0], share=features.share("env")) if sites else blamed
    evidence = [
        f"{percent(features.share('env'))} of an environment step's time, {seconds(env_s)}, is in the environment"
    ]
    if batching:
        evidence.append(f"the policy runs on one observation at a time: {seconds(acting)} a step")
    return Finding(
        pattern="environment-bound",
        cause="batching" if batching else "env",
        culprit=blamed,
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="high",
        evidence=evidence,
        advice=_advice(features, batching),
    )


def _waits(features: Features) -> bool:
    phase = features.measurement.phase("env")
    return bool(phase and phase.blocked_s > 0.5 * phase.mean_s)


def _advice(features: Features, batching: bool) -> list[str]:
    measured = features.measurement
    spare = features.spare_cores
    if batching:
        return ["step many environments at once: gymnasium.make_vec(..., num_envs=16), one policy call for all of them"]
    advice = ["make the environment's step cheaper: whole-array operations instead of Python loops"]
    if measured.envs == 1:
        advice.append("or run several environments as a vector, so that the policy is called once for all of them")
    if spare > 0.7:
        advice.append(
            f"{spare:.1f} of {measured.cores:g} cores are idle: AsyncVectorEnv steps environments in processes"
        )
    return advice
