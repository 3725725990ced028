"""compute-bound: the device computes nearly all the time; only faster kernels make the step shorter."""

from __future__ import annotations

from unstall.records.report import Finding
from unstall.text.units import factor, flops, percent, share
from unstall.trace.kernels import UNNAMED
from unstall.trace.look import Look
from unstall.trace.phrases import short
from unstall.trace.thresholds import BUSY_WITHOUT_GAPS, MOSTLY_COMPUTING


def match(look: Look) -> Finding | None:
    """The finding, or None when the device computes for less than most of the step."""
    facts, shares = look.facts, look.shares
    if shares["compute"] < MOSTLY_COMPUTING.value:
        return None
    operators = [total for total in facts.kernels.by_operator() if total.name not in UNNAMED]
    if not operators:
        return None
    top = operators[0]
    of_all = top.ns / max(sum(total.ns for total in operators), 1.0)
    headroom = look.gain("compute=0.5x")
    row = int(facts.timeline.launch[top.longest])
    evidence = [
        f"the device computes {percent(shares['compute'])} of a step, and is idle {percent(1 - shares['busy'])}",
        f"{short(top.name)} takes {percent(of_all)} of the kernels' time, "
        f"most of it in {short(facts.timeline.names[facts.timeline.device.name[top.longest]])}",
        f"kernels twice as fast would make the step {factor(headroom)} faster"
        + ("" if headroom > 1.02 else ": the host takes as long to submit them"),
    ]
    if facts.flops is not None and facts.flops.complete:
        reached = f", {share(facts.flops.mfu)} of the device's listed peak" if facts.flops.mfu else ""
        rate = flops(facts.flops.per_step / facts.windows.step_s)
        evidence.append(f"at least {rate} ({facts.flops.dtype}) by recorded shapes{reached}")
    return Finding(
        pattern="compute-bound",
        cause="precision" if _single_precision(look) else "kernel",
        culprit=facts.blame.culprit(row, min(of_all * shares["compute"], 1.0), look.where),
        headroom=headroom,
        headroom_known_by="predicted",
        confidence="high" if shares["compute"] >= BUSY_WITHOUT_GAPS.value else "medium",
        evidence=evidence,
        advice=[
            "lower precision where results allow it (autocast to bf16, TF32); channels_last for convolutions",
            "fused kernels: scaled_dot_product_attention, torch.compile; or a smaller model",
        ],
    )


def _single_precision(look: Look) -> bool:
    known = look.facts.flops
    return known is not None and known.dtype == "float32"
