"""compute-bound: the model's mathematics fills the step, and something about it can be made cheaper.

A model that fills the step with arithmetic at a good rate, evenly over its layers, is healthy: that is what the
machine is for. Blamed are double precision, a layer out of all proportion, cores left idle, an optimizer that costs
more than the model, and a rate far below the machine's peak. On a device it is what is left when nothing else is in
the way: only faster kernels make the step shorter.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from unstall.child.seams import modules, optimizer
from unstall.child.user_files import is_program_file
from unstall.diagnose import claims, source
from unstall.diagnose.blame import culprit_at
from unstall.diagnose.dominant_module import dominant_module, own_share
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.gradients import CostlyGradient, costly_gradient
from unstall.diagnose.health import (
    computes_on_padding,
    multiplies_zeros,
    wasted_gradients,
    wastes_gradients,
    zeros,
    zeros_s,
)
from unstall.diagnose.lower_precision import by_bfloat16
from unstall.diagnose.patterns.base import BY_REWRITING, Features, Pattern, UsualRemedy, at, of_step, part, worth
from unstall.diagnose.ranks import waits_unrecorded
from unstall.diagnose.thresholds import (
    BUSY_WITHOUT_GAPS,
    DEAR_OPTIMIZER,
    GOOD_MFU,
    IDLE_TEAM,
    MODEL_SHARE,
    MOSTLY_COMPUTING,
    MOSTLY_COUNTED,
    MOSTLY_MODEL,
    NOTICED,
    OUTRANKS_GROWTH,
    POOR_RATE,
    PRECISION_COST,
    QUIET,
    SPARE_CORE,
    TIE,
    WORTH,
)
from unstall.records.measurements import ModuleMeasurement, ZeroProducts
from unstall.records.report import Culprit, Finding, NextStep
from unstall.records.run import Utilization
from unstall.records.vocabulary import BACKWARD, FORWARD, MODEL_PHASES, OPTIMIZER
from unstall.text.units import factor, flops, percent
from unstall.text.units import share as share_of
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures
from unstall.trace.kernels import UNNAMED
from unstall.trace.phrases import short


class ComputeBound(Pattern):
    """The mathematics is what takes the time."""

    name = "compute-bound"
    brief = "the model's math takes the time"
    can_be_freed = False
    next_step = NextStep(label="time by module:", option="--modules")
    doing = (("model", "runs the model, its backward pass and its optimizer"),)
    device_uses = ("compute",)
    causes = ("precision", "gradients", "padding", "zeros", "backward", "kernel", "model", "optimizer", "threads")
    phases = MODEL_PHASES
    residual = useful = True
    by_hand = (
        ("model", "write it with the library's fused operator, e.g. scaled_dot_product_attention"),
        ("kernel", "look for a cheaper operator or shape; for convolutions, try memory_format=torch.channels_last"),
        (
            "precision",
            'compute in float32 or bfloat16; on a GPU, also try torch.set_float32_matmul_precision("high")',
        ),
        ("gradients", "freeze them: `requires_grad_(False)`, and call what only they are in under `torch.no_grad()`"),
        ("padding", "pad a batch to its own longest row, and make batches of rows of like length"),
        ("zeros", "select the rows that count before the layers; index, group or band what a product with zeros picks"),
        (
            "backward",
            "take all parts of a tensor at once: `unbind`, `split`, one index for all; sparse=True for embeddings",
        ),
        ("optimizer", "update with fused=True, and let zero_grad() drop the gradients: no set_to_none=False"),
    )
    calibration = (
        ("optimizer", None, Range(0.8, 1.0, 6.0, "a sparse update also frees backward: one program, 5.8")),
        ("threads", None, Range(0.3, 1.0, 1.1, "there are no more cores; the zoo's twin gains 0.7 of it")),
        (
            "gradients",
            None,
            Range(0.5, 1.0, 2.0, "parameters are no measure of time; without gradients, forward keeps nothing either"),
        ),
        (
            "padding",
            None,
            Range(0.5, 1.0, 1.5, "attention takes the square of the length; what is no layer of tokens stays"),
        ),
        ("zeros", None, Range(0.6, 1.0, 1.5, "one early cycle says how many zeros; what is left runs at another rate")),
        (
            "backward",
            None,
            Range(0.7, 1.0, 1.6, "one early step says how backward is divided; what it fills is read again elsewhere"),
        ),
        ("precision", None, Range(0.6, 1.0, 1.6, "the zoo's twin gains 1.0 of it; some CPUs more")),
        (None, None, Range(0.6, 1.0, 3.5, "no stub measures it; fixed twins gain 0.7 to 3.3 of it")),
    )
    usual_remedies = (
        ("precision", UsualRemedy("float32", Range(0.0, 0.1, 0.5, "half the bytes, twice the lanes: zoo 0"))),
        ("gradients", UsualRemedy("frozen parameters", Range(0.0, 0.05, 0.4, "what is not computed is free"))),
        (
            "padding",
            UsualRemedy("batches without padding", Range(0.0, 0.25, 0.9, "rows of one batch differ in length still")),
        ),
        (
            "zeros",
            UsualRemedy("products of what counts", Range(0.0, 0.05, 0.4, "zoo: 0; two programs of others 0 and 0.09")),
        ),
        (
            "backward",
            UsualRemedy(
                "an operator with a cheaper gradient", Range(0.0, 0.15, 0.7, "the gradient itself is still needed")
            ),
        ),
        (
            "optimizer",
            UsualRemedy(
                "a fused or sparse update",
                Range(0.0, 0.2, 0.9, "the weights are read and written still; sparse ones are not"),
            ),
        ),
        (
            "threads",
            UsualRemedy(
                "all cores for torch", Range(0.0, 0.4, 0.95, "operators scale less than their threads: zoo 0.2")
            ),
        ),
        ("kernel", UsualRemedy("a cheaper kernel", Range(0.0, 0.3, 0.8, BY_REWRITING))),
        (None, UsualRemedy("a fused operator", Range(0.0, 0.4, 0.9, BY_REWRITING))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By what can be made cheaper about the model, not by its share of the step alone."""
        model_s = host.model_s
        if model_s < MODEL_SHARE * host.step_s:
            return None
        suspects = _Suspects.of(host)
        cause = _cause(host, suspects)
        if cause is None:
            return None
        share = model_s / host.step_s
        sure = cause in ("precision", "gradients", "zeros", "backward", "optimizer") or suspects.module
        return self.finding(
            cause=cause,
            culprit=_culprit(host, cause, suspects),
            share=share,
            phases=() if host.python_in_forward else self.phases,
            headroom=host.headroom_without(_waste(host, cause, suspects)),
            confidence="low" if waits_unrecorded(host.measurement) else "high" if sure else "medium",
            evidence=_evidence(host, cause, suspects),
            advice=[_advice(cause, suspects)],
        )

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
        most = OUTRANKS_GROWTH if host.model_s > MOSTLY_MODEL * host.step_s else WORTH
        # A layer takes most of the time in a model of many tiny operators, too, and these say more.
        return min(gain, most / (TIE**2 if finding.cause in ("model", "kernel") else TIE))

    def condition(self, finding: Finding) -> str:
        """None: it is the model that is to be made cheaper, not left out."""
        return ""

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the part of the model that is blamed."""
        return f"{part(finding)} is model math{at(finding.culprit, ', above all in ')}"


class _Suspects(NamedTuple):
    """What of the model may be out of proportion; None for what is not."""

    module: ModuleMeasurement | None
    gradient: CostlyGradient | None
    update: Culprit | None
    """The function that holds the optimizer's time, where that is the program's own and not a library's."""
    products: ZeroProducts | None
    """Products with zeros."""

    @classmethod
    def of(cls, host: HostFeatures) -> _Suspects:
        products = host.measurement.zero_products if multiplies_zeros(host) else None
        return cls(dominant_module(host), costly_gradient(host), host.own_update, products)


def _cause(host: HostFeatures, suspects: _Suspects) -> str | None:
    measured, top = host.measurement, suspects.module
    if measured.model.dtype == "torch.float64":
        return "precision"
    if wastes_gradients(host):
        return "gradients"
    if computes_on_padding(host):
        return "padding"
    if suspects.products is not None and suspects.gradient is None:  # a slice's gradient is mostly zeros, too
        return "zeros"
    optimizer, passes = host.phase_s(OPTIMIZER.name), (host.phase_s(FORWARD.name), host.phase_s(BACKWARD.name))
    if optimizer > min(DEAR_OPTIMIZER * host.model_s, max(passes)):
        return "optimizer"
    convolves = top is not None and "Conv" in top.type  # costly in forward, too: it is the kernel, not its gradient
    if suspects.gradient is not None and not convolves:
        return "backward"
    leaves_cores = _idle_cores(host) >= SPARE_CORE and "cuda" not in measured.model.device
    # A limit on threads may be meant, a layer of the program's own that costs more is not.
    own = top is not None and is_program_file(top.file)
    if leaves_cores and not (own and _waste(host, "model", suspects) > _waste(host, "threads", suspects)):
        return "threads"
    if top is not None:
        return "kernel" if convolves else "model"
    efficiency = host.efficiency
    coverage = measured.model.flops_coverage or 0.0
    undisturbed = measured.other_cores < QUIET * measured.cores  # else the rate tells of the neighbours
    if efficiency is not None and efficiency < POOR_RATE and coverage > MOSTLY_COUNTED and undisturbed:
        return "model"
    return None


def _evidence(host: HostFeatures, cause: str, suspects: _Suspects) -> list[str]:
    measured, model_s, top = host.measurement, host.model_s, suspects.module
    lines = [f"forward, backward and optimizer take {of_step(model_s / host.step_s, model_s)}"]
    if cause == "precision":
        lines.append("its parameters are float64: twice the memory and half the arithmetic rate of float32 or worse")
    if cause == "gradients":
        lines.append(wasted_gradients(host))
    if cause == "padding":
        everywhere = f", {percent(measured.model.spare)} in every row" if measured.model.spare else ""
        lines.append(f"{percent(measured.model.padding)} of the positions in a batch are padding{everywhere}")
    if cause == "zeros":
        lines.append(zeros(host))
    if cause == "backward" and suspects.gradient is not None:
        lines.append(suspects.gradient.sentence)
    if cause == "threads":
        idle = f"{_idle_cores(host):.1f} of them are idle"
        lines.append(f"torch computes on {measured.model.threads} of {measured.cores:g} cores; {idle}")
    if top and cause in ("model", "kernel", "precision"):
        own = percent(own_share(measured.modules, top))
        lines.append(f"{top.name or top.type} ({top.type}) takes {own} of forward")
    if host.efficiency is not None:
        lines.append(f"the model's arithmetic runs at {percent(host.efficiency)} of this machine's peak")
    return lines


def _idle_cores(host: HostFeatures) -> float:
    """Cores that torch leaves idle by computing on few threads; what loader workers use is not idle.

    What other programs take counts as idle: they come and go, and a limit on threads stays.
    """
    measured = host.measurement
    threads = measured.model.threads
    if not 0 < threads < IDLE_TEAM * measured.cores / max(1, len(measured.ranks)):
        return 0.0
    return max(0.0, measured.cores - max(host.used_cores, threads)) / max(1, len(measured.ranks))


def _waste(host: HostFeatures, cause: str, suspects: _Suspects) -> float:
    """Seconds a step that would be saved if what is blamed cost nothing."""
    measured, model_s = host.measurement, host.model_s
    if cause == "precision":
        return PRECISION_COST * model_s
    if cause == "optimizer":
        return host.phase_s(OPTIMIZER.name)
    if cause == "gradients":
        return host.phase_s(BACKWARD.name) * measured.model.wasted_backward
    if cause == "padding":
        return host.phase_s(FORWARD.name, BACKWARD.name) * measured.model.padding
    if cause == "zeros":
        return zeros_s(host)
    if cause == "backward" and suspects.gradient is not None:
        return suspects.gradient.share * host.step_s
    if cause == "threads":
        threads = measured.model.threads
        return model_s * (1 - threads / (threads + _idle_cores(host)))
    passes = host.phase_s(FORWARD.name, BACKWARD.name)
    if suspects.module is not None:
        return passes * own_share(measured.modules, suspects.module)
    return passes * (1 - (host.efficiency or 0.0))  # at the machine's peak the arithmetic alone would be left


def _culprit(host: HostFeatures, cause: str, suspects: _Suspects) -> Culprit | None:
    if cause == "optimizer":
        return suspects.update or host.caller(optimizer.STEP, share=host.share(OPTIMIZER.name))
    if cause == "threads":
        setter = _thread_setter(host)
        if setter is not None:
            return setter
    model = host.measurement.model
    dropped = model.dropped
    if cause == "gradients" and dropped is not None and dropped.frames and dropped.share > model.unused_gradients:
        frame = dropped.frames[-1]
        return culprit_at(frame.file, frame.line, host.share(BACKWARD.name), via=dropped.model)
    if cause == "gradients" and model.file:
        via = ", ".join(model.idle_parts)[:100]
        return culprit_at(model.file, model.line, host.share(BACKWARD.name), via)
    if cause == "padding" and (collate := _collate(host)) is not None:
        return collate
    if cause == "zeros" and (products := suspects.products) is not None:
        frame = products.frames[-1]
        return culprit_at(frame.file, frame.line, zeros_s(host) / host.step_s)
    if cause == "backward" and (gradient := suspects.gradient) is not None:
        return culprit_at(gradient.frame.file, gradient.frame.line, gradient.share)
    in_model = host.blame.main_culprit(host.blame.of_model())
    culprit = in_model or host.caller(modules.FORWARD, share=host.share(FORWARD.name))
    top = suspects.module
    if culprit is not None and top is not None:
        via = f"{top.name or 'the model'}: {top.type}({top.detail})"[:100]
        return msgspec.structs.replace(culprit, via=via)
    return culprit


def _collate(host: HostFeatures) -> Culprit | None:
    """The program's own function that makes a batch of samples."""
    loader = host.measurement.loader
    file, line = loader.collate_at if loader is not None else ("", 0)
    if not is_program_file(file):
        return None
    return culprit_at(file, line, host.share(FORWARD.name, BACKWARD.name))


def _thread_setter(host: HostFeatures) -> Culprit | None:
    """The line of the user's that limits torch's threads, if it is in a file that the loop runs through."""
    for file in dict.fromkeys(site.file for site in host.measurement.sites):
        for line in source.lines_calling(file, "set_num_threads"):
            return culprit_at(file, line, host.share(FORWARD.name))
    return None


def _advice(cause: str, suspects: _Suspects) -> str:
    top, gradient, products = suspects.module, suspects.gradient, suspects.products
    name = f"{top.name} ({top.type})" if top else "the model"
    return {
        "precision": "use float32 (model.float(), no set_default_dtype(float64)), or bfloat16",
        "gradients": "compute no gradients that nothing uses: requires_grad_(False) for what is not trained, and "
        "torch.no_grad() around what only it is in, or .detach() its output",
        "padding": "pad a batch to its own longest row, not to a fixed length, and draw batches of rows of like length",
        "zeros": "compute the rows that a loss depends on alone: select them before the layers that make them"
        if products is not None and products.of_gradients
        else "leave out the products with zeros: an index or an embedding for rows of ones and zeros, a grouped or "
        "depthwise convolution or a band for a kernel that mixes few channels, or a sparse tensor",
        "backward": gradient.advice if gradient is not None else "",
        "optimizer": "compute less in the program's own update, or for several parameters at once"
        if suspects.update is not None
        else "a cheaper update: fused=True or foreach=True, sparse gradients for large embeddings",
        "threads": "let torch use the cores: remove torch.set_num_threads / OMP_NUM_THREADS",
        "kernel": f"make {name} cheaper: a smaller kernel, downsampling before it, depthwise-separable",
        "model": f"make {name} cheaper: a fused operator (scaled_dot_product_attention), a smaller size",
    }[cause]


PATTERN = ComputeBound()
