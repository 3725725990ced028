"""What it takes to call a run healthy: evidence that the machine does what it is for."""

from __future__ import annotations

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.gradients import costly_gradient
from unstall.diagnose.thresholds import (
    ACCOUNTED,
    BATCHED,
    BUSY_ELSEWHERE,
    CALLED_OFTEN,
    COUNTED_OPS,
    GOOD_RATE,
    MOST,
    PADDING,
    RECURRENT_RATE,
    SINGLE,
    UNUSED_GRADIENTS,
)
from unstall.records.vocabulary import BACKWARD, FORWARD, MODEL_PHASES, OTHER, PhaseName
from unstall.text.units import percent

RECURRENT = ("GRU", "LSTM", "RNN")
"""Types of layers whose steps wait for each other."""


def objections(host: HostFeatures) -> list[str]:
    """Why the run is not shown to be healthy, one line each; empty where it is."""
    model = host.measurement.model
    lines = []
    if host.model_s < ACCOUNTED * host.step_s:
        name = largest_phase(host, besides=MODEL_PHASES)
        share = percent(host.model_s / host.step_s)
        lines.append(f"only {share} of a step is the model's math; {name} takes {percent(host.share(name))}")
    if (model.batch_size or BATCHED) <= SINGLE and host.model_calls >= CALLED_OFTEN:
        lines.append(f"the model is called {model.forwards:.3g} times a step on single observations")
    if wastes_gradients(host):
        lines.append(
            f"{percent(model.unused_gradients)} of the gradients that backward computes are used by no optimizer"
        )
    if computes_on_padding(host):
        lines.append(f"{percent(model.padding)} of the positions in a batch are padding")
    gradient = costly_gradient(host)
    if gradient is not None:
        lines.append(gradient.sentence)
    return [*lines, *_slow_arithmetic(host)]


def wastes_gradients(host: HostFeatures) -> bool:
    """Whether a good part of the step computes gradients that no optimizer uses."""
    return host.measurement.model.unused_gradients * host.share(BACKWARD.name) >= UNUSED_GRADIENTS


def computes_on_padding(host: HostFeatures) -> bool:
    """Whether a good part of the step computes on the padding of sequences."""
    return host.measurement.model.padding * host.share(FORWARD.name, BACKWARD.name) >= PADDING


def largest_phase(host: HostFeatures, besides: tuple[PhaseName, ...] = ()) -> PhaseName:
    """The phase that takes the most of the step, of those that are not left out."""
    names = [name for name in host.seconds if name not in besides]
    return max(names, key=host.phase_s, default=OTHER.name)


def is_recurrent(host: HostFeatures) -> bool:
    """Whether most of the modules' own time is in recurrent layers."""
    total = sum(module.self_s for module in host.measurement.modules)
    recurrent = sum(module.self_s for module in host.measurement.modules if module.type in RECURRENT)
    return recurrent > MOST * total > 0


def _slow_arithmetic(host: HostFeatures) -> list[str]:
    """Whether the arithmetic runs at a rate that is usual for such layers, as far as is known."""
    measured, rate = host.measurement, host.efficiency
    coverage = measured.model.flops_coverage
    if rate is None and measured.model.flops and measured.other_cores >= BUSY_ELSEWHERE:
        return ["other programs took so many cores that the rate of the model's arithmetic is not known"]
    if rate is None or (coverage is not None and coverage < COUNTED_OPS):
        return ["how fast the model computes, compared with this machine's peak, is not known"]
    least = RECURRENT_RATE if is_recurrent(host) else GOOD_RATE
    if rate >= least:
        return []
    return [
        f"the model's arithmetic runs at {percent(rate)} of this machine's peak; such layers reach {percent(least)}"
    ]
