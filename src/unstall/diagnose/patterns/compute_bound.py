"""compute-bound: the model's mathematics fills the step, and something about it can be made cheaper.

A model that fills the step with arithmetic at a good rate, evenly over its layers, is healthy: that is what the
machine is for. Blamed are double precision, a layer out of all proportion, cores left idle, an optimizer that costs
more than the model, and a rate far below the machine's peak. On a device it is what is left when nothing else is in
the way: only faster kernels make the step shorter.
"""

from __future__ import annotations

import msgspec

from unstall.diagnose import claims, health, page_faults, source
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.lower_precision import by_bfloat16
from unstall.diagnose.model_causes import BY_NAME, CAUSES, find
from unstall.diagnose.model_causes.base import ModelCause, Suspects
from unstall.diagnose.patterns.base import BY_REWRITING, Features, Pattern, UsualRemedy, at, of_step, part, worth
from unstall.diagnose.ranks import waits_unrecorded
from unstall.diagnose.thresholds import (
    BUSY_WITHOUT_GAPS,
    GOOD_MFU,
    MODEL_SHARE,
    MOSTLY_COMPUTING,
    NOTICED,
    TIE,
    WORTH,
    WORTH_A_LINE,
)
from unstall.records.report import Culprit, Finding, NextStep
from unstall.records.run import Utilization
from unstall.records.vocabulary import MODEL_PHASES
from unstall.text.units import factor, flops, percent
from unstall.text.units import share as share_of
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures
from unstall.trace.kernels import UNNAMED
from unstall.trace.phrases import short

_AT_ONCE = "the line stands in a loop: have one operator do for the whole batch what it does item by item"


class ComputeBound(Pattern):
    """The mathematics is what takes the time."""

    name = "compute-bound"
    brief = "the model's math takes the time"
    can_be_freed = False
    next_step = NextStep(label="time by module:", option="--modules")
    doing = (("model", "runs the model, its backward pass and its optimizer"),)
    device_uses = ("compute",)
    causes = tuple(cause.name for cause in CAUSES)
    phases = MODEL_PHASES
    residual = useful = True
    by_hand = tuple((cause.name, cause.by_hand) for cause in CAUSES if cause.by_hand)
    calibration = (
        *((cause.name, None, cause.calibration) for cause in CAUSES if cause.calibration is not None),
        (None, None, Range(0.6, 1.0, 3.5, "no stub measures it; fixed twins gain 0.7 to 3.3 of it")),
    )
    usual_remedies = (
        *((cause.name, cause.usual_remedy) for cause in CAUSES if cause.usual_remedy is not None),
        (None, UsualRemedy("a fused operator", Range(0.0, 0.4, 0.9, BY_REWRITING))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By what can be made cheaper about the model, not by its share of the step alone."""
        model_s = host.model_s
        if model_s < MODEL_SHARE * host.step_s:
            return None
        suspects = Suspects.of(host)
        cause = find(host, suspects)
        if cause is None:
            return None
        share = model_s / host.step_s
        evidence = [
            f"forward, backward and optimizer take {of_step(share, model_s)}",
            *cause.evidence(host, suspects),
        ]
        if host.efficiency is not None:
            evidence.append(f"the model's arithmetic runs at {percent(host.efficiency)} of this machine's peak")
        faulting = page_faults.evidence(host.measurement)
        advice = [cause.advice(suspects), *([page_faults.ADVICE] if faulting else [])]
        sure, culprit = cause.sure or suspects.module, cause.culprit(host, suspects)
        item_by_item = culprit is not None and _is_in_loop(culprit, host)
        finding = self.finding(
            cause=cause.name,
            culprit=culprit,
            share=share,
            phases=() if host.python_in_forward else self.phases,
            headroom=host.headroom_without(cause.waste_s(host, suspects)),
            confidence="low" if waits_unrecorded(host.measurement) else "high" if sure else "medium",
            evidence=[*evidence, *([faulting] if faulting else [])],
            advice=[*([_AT_ONCE] if item_by_item else []), *dict.fromkeys(advice)],
        )
        return finding if cause.by_module else msgspec.structs.replace(finding, next_step=None)

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """The device computes nearly all the time."""
        metrics, shares = device.metrics, device.shares
        share = shares["compute"]
        if share < MOSTLY_COMPUTING:
            return None
        operators = [total for total in metrics.kernels.by_operator() if total.name not in UNNAMED]
        if not operators:
            return None
        top = operators[0]
        of_all = top.ns / max(sum(total.ns for total in operators), 1.0)
        half = device.gain("compute=0.5x")
        gain = by_bfloat16(device) or claims.replayed("kernels twice as fast", half, device)
        kernel = metrics.timeline.names[metrics.timeline.device.name[top.longest]]
        evidence = [
            f"the device computes {percent(share)} of a step, and is idle {percent(1 - shares['busy'])}",
            f"{short(top.name)} takes {percent(of_all)} of the kernels' time, most of it in {short(kernel)}",
            f"kernels twice as fast would make the step {factor(half)} faster"
            + ("" if half > NOTICED else ": the host takes as long to submit them"),
        ]
        if metrics.flops is not None and metrics.flops.complete:
            peak = f", {share_of(metrics.flops.mfu)} of the device's listed peak" if metrics.flops.mfu else ""
            rate = flops(metrics.flops.per_step / metrics.windows.step_s)
            evidence.append(f"at least {rate} ({metrics.flops.dtype}) by recorded shapes{peak}")
        single = metrics.flops is not None and metrics.flops.dtype == "float32"
        return self.finding(
            condition=f"with {gain.remedy}",
            summary=f"the device computes {percent(share)} of a step",
            cause="precision" if single else "kernel",
            culprit=metrics.blame.culprit(
                int(metrics.timeline.launch[top.longest]), min(of_all * share, 1.0), device.where
            ),
            share=share,
            headroom=gain.value,
            headroom_known_by="predicted",
            expected_gain=gain,
            confidence="high" if share >= BUSY_WITHOUT_GAPS else "medium",
            evidence=evidence,
            advice=[
                "lower precision where results allow it (autocast to bf16, TF32); channels_last for convolutions",
                "fused kernels: scaled_dot_product_attention, torch.compile; or a smaller model",
            ],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """What the model itself costs is what is left when nothing else is worth fixing."""
        host = features.host
        if features.device is not None:
            flops = features.device.metrics.flops
            is_good = flops is not None and finding.cause != "precision" and (flops.mfu or 0.0) >= GOOD_MFU
            return WORTH / TIE if is_good else TIE * WORTH
        assert host is not None
        gain = worth(finding)
        if finding.cause == "threads":
            # How operators scale is a guess, so that what was timed and is worth fixing comes first.
            return min(gain, max(TIE * WORTH, finding.expected_gain.low if finding.expected_gain else 1.0))
        if _cause(finding).cured_by_a_line and gain >= WORTH_A_LINE:
            return max(gain, TIE * WORTH)
        # A layer takes most of the time in a model of many tiny operators, too, and these say more.
        return min(gain, health.most_of_model(host) / (TIE**2 if finding.cause in ("model", "kernel") else TIE))

    def condition(self, finding: Finding) -> str:
        """None: it is the model that is to be made cheaper, not left out."""
        return ""

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the part of the model that is blamed."""
        return f"{part(finding)} is {_cause(finding).doing}{at(finding.culprit, ', above all in ')}"


def _is_in_loop(culprit: Culprit, host: HostFeatures) -> bool:
    """Whether a step takes the line several times; the training loop itself goes around it once a step."""
    return source.in_loop(culprit.file, culprit.line, without=host.step_lines(culprit.file))


def _cause(finding: Finding) -> type[ModelCause]:
    return BY_NAME.get(finding.cause, ModelCause)


PATTERN = ComputeBound()
