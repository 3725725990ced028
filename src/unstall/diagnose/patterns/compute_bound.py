"""compute-bound: the model's mathematics fills the step, and something about it can be made cheaper.

A model that fills the step with arithmetic at a good rate, evenly over its layers, is healthy: that is what the
machine is for. Blamed are double precision, a layer out of all proportion, cores left idle, an optimizer that costs
more than the model, and a rate far below the machine's peak.
"""

from __future__ import annotations

import math
import re

from unstall.benchmark.stacks import is_user_file
from unstall.diagnose import source
from unstall.diagnose.blame import culprit, line_culprit
from unstall.diagnose.features import Features
from unstall.records.measurements import ModuleMeasurement
from unstall.records.report import Culprit, Finding
from unstall.text.units import percent, seconds

_DOMINANT = 0.6  # share of the modules' own time from which a layer is out of proportion
_ALONE = 0.85
_LARGE_KERNEL = 49  # weights a channel, 7 x 7
_RECURRENT = ("GRU", "LSTM", "RNN")
_SLOW, _POOR = 0.35, 0.2  # of the machine's peak
_DEAR_OPTIMIZER = 0.4  # share of the model's time


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    model_s = features.model_s
    if model_s < 0.3 * features.step_s:
        return None
    cause = _cause(features)
    if cause is None:
        return None
    measured = features.measurement
    evidence = [
        f"forward, backward and optimizer take {percent(model_s / features.step_s)} of a step, {seconds(model_s)}"
    ]
    gain = _gain(features, cause)
    headroom = features.headroom_without(gain)
    top = _dominant(features)
    if cause == "precision":
        evidence.append("its parameters are float64: twice the memory and half the arithmetic rate of float32 or worse")
    if cause == "threads":
        evidence.append(f"torch computes on {measured.model.threads} of {measured.cores:g} cores")
    if top and cause in ("model", "kernel", "precision"):
        evidence.append(
            f"{top.name or top.type} ({top.type}) takes {percent(_own_share(measured.modules, top))} of forward"
        )
    efficiency = features.efficiency
    if efficiency is not None:
        evidence.append(f"the arithmetic done is {percent(efficiency)} of this machine's peak")
    return Finding(
        pattern="compute-bound",
        cause=cause,
        culprit=_culprit(features, cause, top),
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="high" if cause in ("precision", "optimizer") or top else "medium",
        evidence=evidence,
        advice=[_advice(cause, top)],
    )


def _cause(features: Features) -> str | None:
    measured = features.measurement
    if measured.model.dtype == "torch.float64":
        return "precision"
    if features.seconds.get("optimizer", 0.0) > _DEAR_OPTIMIZER * features.model_s:
        return "optimizer"
    if (
        0 < measured.model.threads < 0.6 * measured.cores / max(1, len(measured.ranks))
        and "cuda" not in measured.model.device
    ):
        return "threads"
    top = _dominant(features)
    if top is not None:
        return "kernel" if "Conv" in top.type else "model"
    efficiency = features.efficiency
    coverage = measured.model.flops_coverage or 0.0
    undisturbed = measured.other_cores < 0.15 * measured.cores  # else the rate tells of the neighbours
    if efficiency is not None and efficiency < _POOR and coverage > 0.8 and undisturbed:
        return "model"
    return None


def _gain(features: Features, cause: str) -> float:
    """Seconds a step that the remedy would save, by rule."""
    measured = features.measurement
    model_s = features.model_s
    if cause == "precision":
        return 0.5 * model_s
    if cause == "optimizer":
        return features.seconds.get("optimizer", 0.0)
    if cause == "threads":
        return model_s * (1 - max(1, measured.model.threads) / measured.cores)
    top = _dominant(features)
    passes = features.seconds.get("forward", 0.0) + features.seconds.get("backward", 0.0)
    if top is not None:
        return passes * _own_share(measured.modules, top) * 0.75
    return passes * 0.5


def _own_share(modules: list[ModuleMeasurement], module: ModuleMeasurement) -> float:
    """Share of the modules' own time that this one takes, or, for a class of the user's, all of that class together.

    Blocks of one class repeat the same code; layers of a library's class have only the name in common.
    """
    total = sum(other.self_s for other in modules)
    alike = [other for other in modules if other is module or _same_class(other, module)]
    return sum(other.self_s for other in alike) / total if total else 0.0


def _same_class(one: ModuleMeasurement, other: ModuleMeasurement) -> bool:
    return is_user_file(one.file) and (one.type, one.file, one.line) == (other.type, other.file, other.line)


def _dominant(features: Features) -> ModuleMeasurement | None:
    """A module out of all proportion, in a model of several.

    Some layer always takes the most. One is out of proportion when next to nothing else takes time, or when it takes
    most of it and is the user's own code, has a very large kernel, or computes at a poor rate. A recurrent layer is
    left alone: it is what such a model is made of.
    """
    modules = features.measurement.modules
    working = [module for module in modules if module.self_s > 0 and module.type not in _RECURRENT]
    if len(working) < 3 or features.python_in_forward > 0.3 * features.seconds.get("forward", 0.0):
        return None
    top = max(working, key=lambda module: (_own_share(modules, module), module.self_s))
    share = _own_share(modules, top)
    slow = features.efficiency is not None and features.efficiency < _SLOW
    odd = is_user_file(top.file) or _large_kernel(top) or slow
    return top if share >= _ALONE or (share >= _DOMINANT and odd) else None


def _large_kernel(module: ModuleMeasurement) -> bool:
    sizes = re.search(r"kernel_size=\(([\d, ]+)\)", module.detail)
    return sizes is not None and math.prod(int(size) for size in re.findall(r"\d+", sizes[1])) >= _LARGE_KERNEL


def _culprit(features: Features, cause: str, top: ModuleMeasurement | None) -> Culprit | None:
    measured = features.measurement
    if cause == "optimizer":
        sites = [site for site in measured.sites if site.seam == "~optimizer"]
        return line_culprit(sites[0], share=features.share("optimizer")) if sites else None
    if cause == "threads":
        setter = _thread_setter(features)
        if setter is not None:
            return setter
    samples = features.blame.in_phase("forward")
    found = culprit(samples, features.blame.total, "main")
    if found is None or not samples:
        sites = [site for site in measured.sites if site.seam == "~forward"]
        found = line_culprit(sites[0], share=features.share("forward")) if sites else None
    if found is not None and top is not None:
        found.via = f"{top.name or 'the model'}: {top.type}({top.detail})"[:100]
    return found


def _thread_setter(features: Features) -> Culprit | None:
    """The line of the user's that limits torch's threads, if it is in a file that the loop runs through."""
    for file in dict.fromkeys(site.file for site in features.measurement.sites):
        for line in source.lines_calling(file, "set_num_threads"):
            function = source.function_at(file, line)
            code = source.code_at(file, line)
            return Culprit(function=function.qualname, file=file, line=line, share=features.share("forward"), code=code)
    return None


def _advice(cause: str, top: ModuleMeasurement | None) -> str:
    name = f"{top.name} ({top.type})" if top else "the model"
    return {
        "precision": "use float32 (model.float(), no set_default_dtype(float64)), or bfloat16",
        "optimizer": "a cheaper update: fused=True or foreach=True, sparse gradients for large embeddings",
        "threads": "let torch use the cores: remove torch.set_num_threads / OMP_NUM_THREADS",
        "kernel": f"make {name} cheaper: a smaller kernel, downsampling before it, depthwise-separable",
        "model": f"make {name} cheaper: a fused operator (scaled_dot_product_attention), a smaller size",
    }[cause]
