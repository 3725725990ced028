"""overhead-bound: many tiny operators, so that calling them costs more than what they compute.

On a device the sign is an empty launch queue: kernels start as soon as they are launched. The share of time inside
launch calls is none: it is the same when the queue is deep and the host far ahead.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np

from unstall.child.seams import modules, optimizer
from unstall.child.user_files import is_user_file
from unstall.diagnose import dataflow, health, source
from unstall.diagnose.blame import line_culprit
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.layer_types import RECURRENT, is_mostly
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, at, of_step, part, worth
from unstall.diagnose.placing import Placed, count
from unstall.diagnose.positions import HOST_PLACES
from unstall.diagnose.thresholds import (
    BATCHED,
    CALLED_OFTEN,
    CALLED_OP_S,
    FEW_ITEMS,
    FORWARD_OPS,
    LARGE_MODEL_OPS,
    LEAST_CALL_S,
    LOW_EFFICIENCY,
    MANY_OPS,
    MEMORY_CALLS,
    MODEL_SHARE,
    MOST,
    MOSTLY_COMPUTING,
    PROMPT_SHARE,
    SEEN,
    SLOW_CALL_S,
    SMALL_KERNELS,
    SUBMITTING_SHARE,
    TINY_OP_S,
    WORTH,
    WRITING,
)
from unstall.records.model import ModelMeasurement
from unstall.records.report import Culprit, Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import BACKWARD, FORWARD, MODEL_PHASES, OPTIMIZER, OTHER, VALIDATION
from unstall.text.units import factor, percent, seconds
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures
from unstall.trace.nesting import pick
from unstall.trace.phrases import counted, ns
from unstall.trace.timeline import NONE

_ADVICE = {
    "batching": "call the model once on a batch of many items instead of once per item",
    "optimizer": "fewer, larger updates: foreach=True or fused=True, and no parameter groups of one tensor each",
    "small-ops": "use one operator over the whole sequence or batch (nn.GRU, bmm, masks), or torch.compile",
}

_STEPS_WAIT = (
    "the steps of a recurrent layer wait for each other: give each more to do (layers side by side as one, larger "
    "batches), and have fewer of them (sequences of like length in a batch)"
)
_CALLS_WAIT = (
    "the calls wait for each other: give each more to do (larger batches), have fewer of them (a coarser solver), and "
    "compile the model, torch.compile"
)
_MANY_PROMPTS = "hand many prompts at once to generate(), padded on the left; a pipeline takes a list and batch_size"


class OverheadBound(Pattern):
    """Submitting work takes longer than the work."""

    name = "overhead-bound"
    brief = "so many small operations that launching them takes most of the time"
    can_be_freed = False
    device_uses = ("submitting", "cold")
    causes = ("batching", "small-ops", "optimizer")
    phases = MODEL_PHASES
    residual = True
    by_hand = (
        ("batching", "call the model with many items at once"),
        (
            "small-ops",
            "replace the loop of small operators by one of the library's, or use larger batches; on a GPU, try"
            ' model.compile(mode="reduce-overhead")',
        ),
    )
    calibration = ((None, None, Range(0.4, 1.0, 2.5, "no stub measures it; fixed twins gain 0.1 to 1.4 of it")),)
    usual_remedies = (
        (
            "batching",
            UsualRemedy(
                "batched calls",
                Range(0.01, 0.08, 0.5, "1/n of the overhead; how many items can share a call is not known"),
            ),
        ),
        (None, UsualRemedy("fused operators", Range(0.05, 0.3, 0.8, "zoo: 0.4; some loops cannot be fused"))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the number of operators in a step and the time that each takes."""
        model = host.measurement.model
        if not model.ops or host.model_s < MODEL_SHARE * host.step_s:
            return None
        each = host.unhindered_model_s / model.ops
        efficiency = host.efficiency
        single = (model.batch_size or BATCHED) <= FEW_ITEMS
        if _computes(host, each):
            return None
        # Of a few calls on many samples: to batch many calls pays for large operators, too.
        batched = not single and host.model_calls < CALLED_OFTEN - 1
        if batched and (model.ops < MANY_OPS or (each > CALLED_OP_S and _few_take_the_time(host))):
            return None
        calls_wait = not single and host.model_calls >= CALLED_OFTEN and _wait_for_each_other(host)
        cause = _cause(host, single, calls_wait)
        calling = _calling(host) if cause == "small-ops" else []
        outside_s = _outside_s(host, calling)
        taken_s = host.seconds[OPTIMIZER.name] if cause == "optimizer" else host.model_s + outside_s
        # Calling is free, computing is not: what the arithmetic takes at the machine's peak is left.
        headroom = host.headroom_without(taken_s - (efficiency or 0.0) * min(taken_s, host.model_s))
        if headroom < SEEN:
            return None
        share = (host.model_s + outside_s) / host.step_s
        evidence = [f"{percent(share)} of a step is {model.ops:.0f} operators of {seconds(each)} each"]
        if efficiency is not None:
            evidence.append(f"the model does {percent(efficiency)} of this machine's peak arithmetic")
        if cause == "batching" or calls_wait:
            evidence.append(_calls(model, calls_wait))
        advice = [_advice(host, cause, calls_wait)]
        samples = host.measurement.samples_per_step
        if cause == "small-ops" and samples:
            evidence.append(f"a step takes {samples:.4g} samples, {seconds(host.step_s / samples)} each")
            advice.append(_larger_batch(host, samples, efficiency or 0.0))
        return self.finding(
            cause=cause,
            culprit=_culprit(host, cause, calling),
            share=share,
            phases=() if host.python_in_forward or outside_s else self.phases,
            headroom=headroom,
            evidence=evidence,
            advice=advice,
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """By the device's idle time while the host prepares its next, small work."""
        metrics, shares = device.metrics, device.shares
        share = shares["idle_submitting"]
        if share < SUBMITTING_SHARE:
            return None
        prompt = metrics.queue.prompt_share
        sizes = metrics.kernels.sizes
        evidence = [
            f"{of_step(share, share * device.step_s)}, the device is idle while the host prepares its next work",
        ]
        if prompt is not None:
            evidence.append(
                f"{percent(prompt)} of kernels start as soon as they are launched: "
                + ("the queue is empty" if prompt >= PROMPT_SHARE else "for the rest the queue is filled")
            )
        if sizes is not None:
            evidence.append(
                f"{counted(metrics.kernels_per_step, 'kernel')} a step, half of them under {ns(sizes.p50)}; "
                f"launch calls take {percent(shares['launch'])} of a step"
            )
        row, waited = _slowest_operator(device)
        return self.finding(
            summary=f"the device is idle {percent(share)} of a step because the host submits its work too slowly",
            cause=_device_cause(device, row),
            culprit=metrics.blame.culprit(row, waited, device.where),
            share=share,
            headroom=device.gain("launch=0"),
            headroom_known_by="predicted",
            confidence=device.confidence(share) if (prompt or 0) >= PROMPT_SHARE else "medium",
            evidence=[*evidence, *_allocation(device)],
            advice=[
                "capture the step in a CUDA graph (torch.compile with mode='reduce-overhead')",
                "more work a launch: a larger batch, fused and foreach optimizers, torch.compile",
            ],
        )

    def takes_caches(self, host: HostFeatures) -> bool:
        """Its many calls run where the rest of the step does."""
        return True

    def samples_of(self, finding: Finding, host: HostFeatures) -> list[Placed]:
        """Those of the operators' calls: at the model's lines, in the optimizer, and in a loss that calls them."""
        updating = host.blame.in_phase(OPTIMIZER.name)
        if finding.cause == "optimizer":
            return updating
        calling = _calling(host) if finding.cause == "small-ops" else []
        return [*host.blame.of_model(), *updating, *calling]

    def rank(self, finding: Finding, features: Features) -> float:
        """On the host, the model's cost is what is left; on a device that mostly computes, a late host is hidden."""
        host, device = features.host, features.device
        if device is not None:
            hidden = (device.metrics.queue.prompt_share or 0.0) < PROMPT_SHARE
            busy = device.shares["compute"] >= MOSTLY_COMPUTING
            return min(finding.headroom, 0.999 * WORTH) if busy and hidden else finding.headroom
        assert host is not None
        return min(worth(finding), 0.999 * health.most_of_model(host))

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the function that calls the operators."""
        return f"{part(finding)} goes into many small operations{at(finding.culprit, ', above all in ')}"


def _computes(host: HostFeatures, each: float) -> bool:
    """Whether operators that take ``each`` so many seconds, in the mean, are more than their calls."""
    # What takes no longer than a slow call is mostly the call, unless it computes as layers do.
    least_rate = health.usual_rate(host) if each <= SLOW_CALL_S else LOW_EFFICIENCY
    at_rate = host.efficiency is not None and host.efficiency > least_rate
    # What takes no longer than a call is a small operator, whatever it writes: others write in its place.
    writes = host.writing_share > WRITING and each > CALLED_OP_S
    return each > TINY_OP_S or at_rate or writes


def _few_take_the_time(host: HostFeatures) -> bool:
    """Whether large operators take most of the time, so that the mean of all, beside many tiny ones, says nothing."""
    lines = [line for line in host.measurement.operator_lines if line.calls]
    large = (line.forward_s for line in lines if line.forward_s > TINY_OP_S * line.calls)
    return sum(large) > MOST * sum(line.forward_s for line in lines)


def _wait_for_each_other(host: HostFeatures) -> bool:
    """Whether most calls of the model work on what an earlier one gave, as those of a solver of equations do."""
    lines = defaultdict(set)
    for site in host.sites(modules.FORWARD):
        lines[site.file].add(site.line)
    waiting = sum(len(dataflow.waiting_calls(file, frozenset(places))) for file, places in lines.items())
    return waiting > MOST * sum(map(len, lines.values()))


def _calls(model: ModelMeasurement, wait: bool) -> str:
    calls = f"{model.forwards:.3g}"
    times = "once" if calls == "1" else f"{calls} times"
    size = model.batch_size
    each = f", on {size} sample{'s' if size > 1 else ''} each" if size else ""
    return f"the model is called {times} a step{each}{', most on what an earlier call gave' if wait else ''}"


def _cause(host: HostFeatures, single: bool, calls_wait: bool) -> str:
    model = host.measurement.model
    if host.phase_s(OPTIMIZER.name) > max(host.phase_s(FORWARD.name), host.phase_s(BACKWARD.name)):
        return "optimizer"
    if single and (model.ops or 0) / max(model.forwards, 1) < LARGE_MODEL_OPS:
        return "batching"
    if host.model_calls >= CALLED_OFTEN and not calls_wait:
        return "batching"
    return "small-ops"


def _advice(host: HostFeatures, cause: str, calls_wait: bool) -> str:
    if calls_wait and cause == "small-ops":
        return _CALLS_WAIT
    if cause == "batching" and host.measurement.generation:
        return _MANY_PROMPTS
    return _STEPS_WAIT if cause == "small-ops" and is_mostly(host, RECURRENT) else _ADVICE[cause]


def _larger_batch(host: HostFeatures, samples: float, efficiency: float) -> str:
    """What as many samples again would do: all but the calls of the model's operators takes twice as long."""
    calling = host.model_s / host.step_s * (1 - efficiency)
    gain = 2 / (2 - calling)
    return (
        f"or larger batches: as many calls serve {2 * samples:.4g} samples a step, for up to {factor(gain)} the "
        f"samples/s; the training itself then changes"
    )


def _calling(host: HostFeatures) -> list[Placed]:
    """Samples of the one function outside of the model that calls the operators, a loss say; none where forward may.

    Forward does not where its operators would each have to be called in less time than it takes.
    """
    forward_s = host.measurement.unhindered_s.get(FORWARD.name, 0.0)
    ops = host.measurement.model.ops or 0.0
    outside = host.blame.in_phase(*HOST_PLACES)
    culprit = host.blame.main_culprit(outside)
    if not forward_s or culprit is None or forward_s > FORWARD_OPS * ops * LEAST_CALL_S:
        return []
    return [placed for placed in outside if placed.program and placed.program[-1][1].qualname == culprit.function]


def _outside_s(host: HostFeatures, calling: list[Placed]) -> float:
    """Seconds a step of these samples of host code."""
    return host.phase_s(OTHER.name) * count(calling) / count(host.blame.in_phase(*HOST_PLACES)) if calling else 0.0


def _culprit(host: HostFeatures, cause: str, calling: list[Placed]) -> Culprit | None:
    if calling:
        return host.blame.main_culprit(calling)
    if cause == "optimizer":
        return host.own_update or host.caller(optimizer.STEP, share=host.share(OPTIMIZER.name))
    caller = _one_by_one(host) if cause == "batching" else None
    blame = host.blame
    return caller or blame.model_culprit() or blame.main_culprit(blame.in_phase(FORWARD.name, BACKWARD.name))


def _one_by_one(host: HostFeatures) -> Culprit | None:
    """Who calls the model item by item: the user's line, where its loop hands a library one item after the other."""
    site = host.busiest_site(host.blame.in_phase(FORWARD.name, VALIDATION.name), modules.FORWARD)
    if site is None:
        return None
    above = ((site.file, site.function, site.line), *site.callers)
    looping = next((frame for frame in above if source.in_loop(frame[0], frame[2])), above[0])
    if is_user_file(looping[0]) and not is_user_file(site.file):
        site = msgspec.structs.replace(site, file=looping[0], function=looping[1], line=looping[2])
    return line_culprit(site, share=host.share(FORWARD.name))


def _device_cause(device: TraceFeatures, row: int) -> str:
    metrics = device.metrics
    operator = metrics.blame.name(row)
    if "optim" in operator.lower():
        return "optimizer"
    sizes = metrics.kernels.sizes
    return "small-ops" if sizes is not None and sizes.small >= SMALL_KERNELS else "batching"


def _slowest_operator(device: TraceFeatures) -> tuple[int, float]:
    """A launch of the operator that the device waited for longest in all, and that waiting's share of the step."""
    metrics = device.metrics
    gaps = metrics.idle("submitting")
    rows, lengths = metrics.after_gaps("submitting")
    calls = metrics.timeline.launch[rows]
    operators = metrics.blame.origin(calls).operator
    names = pick(metrics.timeline.host.name, operators)
    known = names >= 0
    if not known.any():
        return (int(calls[0]) if len(calls) else NONE), device.shares["idle_submitting"]
    total = np.bincount(names[known], weights=lengths[known])
    worst = int(np.argmax(total))
    part = float(total[worst] / lengths.sum()) * gaps.total / metrics.windows.total_ns
    return int(calls[np.flatnonzero(names == worst)[0]]), part


def _allocation(device: TraceFeatures) -> list[str]:
    """Allocating and freeing device memory in the step stops the device."""
    metrics = device.metrics
    calls, host = metrics.activity.calls.memory, metrics.timeline.host
    inside = calls & (host.start_ns >= metrics.windows.start_ns[0])
    share = float(host.dur_ns[inside].sum()) / metrics.windows.total_ns
    if share < MEMORY_CALLS:
        return []
    return [
        f"allocating and freeing memory by {counted(int(inside.sum()), 'call')} of the driver "
        f"takes {percent(share)} of a step"
    ]


PATTERN = OverheadBound()
