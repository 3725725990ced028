"""overhead-bound: many tiny operators, so that calling them costs more than what they compute."""

from __future__ import annotations

from unstall.diagnose.blame import culprit, line_culprit
from unstall.diagnose.features import Features
from unstall.records.report import Culprit, Finding
from unstall.text.units import percent, seconds

_TINY_OP_S = 60e-6
"""An operator of useful size takes longer; calling one takes 5 to 30 µs, with autograd and Python around it."""
_MANY_OPS = 150
_BATCHED = 16
_LOW_EFFICIENCY = 0.05


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    model = features.measurement.model
    if not model.ops or features.model_s < 0.3 * features.step_s:
        return None
    each = features.model_s / model.ops
    efficiency = features.efficiency
    single = (model.batch_size or _BATCHED) <= 2
    if each > _TINY_OP_S or (efficiency is not None and efficiency > _LOW_EFFICIENCY):
        return None
    if model.ops < _MANY_OPS and not single and model.forwards < 3:
        return None
    cause = _cause(features, single)
    part = features.seconds["optimizer"] if cause == "optimizer" else features.model_s
    # Batching or fusing does the same work in far fewer calls; a fifth of the time is left for what they compute.
    headroom = features.headroom_without(0.8 * part)
    if headroom < 1.05:
        return None
    model_share = percent(features.model_s / features.step_s)
    evidence = [f"{model_share} of a step is {model.ops:.0f} operators of {seconds(each)} on average"]
    if efficiency is not None:
        evidence.append(f"the model does {percent(efficiency)} of the arithmetic this machine can")
    if cause == "batching":
        size = model.batch_size or 1
        evidence.append(
            f"the model is called {model.forwards:.3g} times a step, on {size} sample{'s' if size > 1 else ''} each"
        )
    return Finding(
        pattern="overhead-bound",
        cause=cause,
        culprit=_culprit(features, cause),
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="high",
        evidence=evidence,
        advice=[_ADVICE[cause]],
    )


_ADVICE = {
    "batching": "call the model once on a batch of many items instead of once per item",
    "optimizer": "fewer, larger updates: foreach=True or fused=True, and no parameter groups of one tensor each",
    "small-ops": "use one operator over the whole sequence or batch (nn.GRU, bmm, masks), or torch.compile",
}


def _cause(features: Features, single: bool) -> str:
    model = features.measurement.model
    optimizer = features.seconds.get("optimizer", 0.0)
    if optimizer > 0.5 * features.model_s:
        return "optimizer"
    if (single and (model.ops or 0) / max(model.forwards, 1) < 2000) or model.forwards >= 4:
        return "batching"
    return "small-ops"


def _culprit(features: Features, cause: str) -> Culprit | None:
    total = features.blame.total
    if cause == "optimizer":
        sites = [site for site in features.measurement.sites if site.seam == "~optimizer"]
        return line_culprit(sites[0], share=features.share("optimizer")) if sites else None
    if cause == "batching":
        sites = [site for site in features.measurement.sites if site.seam == "~forward"]
        if sites:
            return line_culprit(sites[0], share=features.share("forward"))
    return culprit(features.blame.in_phase("forward"), total, "main") or culprit(
        features.blame.in_phase("forward", "backward"), total, "main"
    )
