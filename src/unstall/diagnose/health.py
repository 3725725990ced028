"""What it takes to call a run healthy: evidence that the machine does what it is for."""

from __future__ import annotations

from collections.abc import Sequence

from unstall.child.seams import modules
from unstall.child.user_files import is_program_file
from unstall.diagnose import page_faults, source
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.gradients import costly_gradient
from unstall.diagnose.layer_types import CONVOLUTIONS, RECURRENT, is_mostly
from unstall.diagnose.thresholds import (
    ACCOUNTED,
    BATCHED,
    BUSY_ELSEWHERE,
    CALLED_OFTEN,
    COMPUTED_AGAIN,
    COMPUTED_AGAIN_LEADS,
    COUNTED_OPS,
    GOOD_RATE,
    MOST,
    MOSTLY_MODEL,
    OUTRANKS_GROWTH,
    PADDING,
    RECURRENT_RATE,
    SAME_DATA,
    SINGLE,
    SUSPECTS,
    UNUSED_GRADIENTS,
    WORTH,
    ZERO_PRODUCTS,
)
from unstall.records.vocabulary import BACKWARD, FORWARD, MODEL_PHASES, OTHER, TRAINING, PhaseName
from unstall.text.units import percent

_PACKS = "pack_padded_sequence"


def objections(host: HostFeatures) -> list[str]:
    """Why the run is not shown to be healthy, one line each; empty where it is."""
    beside = []
    if host.model_s < ACCOUNTED * host.step_s:
        name = largest_phase(host, besides=MODEL_PHASES)
        share = percent(host.model_s / host.step_s)
        beside.append(f"only {share} of a step is the model's math; {name} takes {percent(host.share(name))}")
    return beside + objections_to_model(host)


def objections_to_model(host: HostFeatures) -> list[str]:
    """Of these, why the model's own math is not shown to be what it should be."""
    model, lines = host.measurement.model, []
    if (model.batch_size or BATCHED) <= SINGLE and host.model_calls >= CALLED_OFTEN:
        lines.append(f"the model is called {model.forwards:.3g} times a step on single observations")
    if wastes_gradients(host):
        lines.append(wasted_gradients(host))
    if computes_again(host):
        lines.append(recomputed(host))
    if computes_on_padding(host):
        lines.append(f"{percent(model.padding)} of the positions in a batch are padding")
    if multiplies_zeros(host):
        lines.append(zeros(host))
    gradient = costly_gradient(host)
    if gradient is not None:
        lines.append(gradient.sentence)
    faulting = page_faults.evidence(host.measurement)
    if faulting is not None:
        lines.append(faulting)
    return [*lines, *_slow_arithmetic(host)]


def wastes_gradients(host: HostFeatures) -> bool:
    """Whether a good part of the step computes gradients that no optimizer uses."""
    return host.measurement.model.wasted_backward * host.share(BACKWARD.name) >= UNUSED_GRADIENTS


def wasted_gradients(host: HostFeatures) -> str:
    """Which gradients these are, for a person."""
    model = host.measurement.model
    if model.dropped is not None and model.dropped.share > model.unused_gradients:
        share = percent(model.dropped.share)
        what = "that no optimizer uses" if model.dropped.never else "that are dropped before it learns"
        return f"{share} of backward computes gradients of {model.dropped.model} {what}"
    share, parts = percent(model.unused_gradients), listed(model.idle_parts)
    return f"{share} of the gradients that backward computes{parts} are used by no optimizer"


def listed(parts: Sequence[str]) -> str:
    """As " (`head`, `neck` and 2 more)"; empty where there are none."""
    most = int(SUSPECTS)
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return f" ({', '.join(f'`{name}`' for name in parts[:most])}{more})" if parts else ""


def computes_again(host: HostFeatures) -> bool:
    """Whether a good part of the step's operators compute what was computed before, on inputs that differ otherwise.

    Where nearly all is, the program is given the same data again and again, as benchmarks are; but weights that learn
    are others in each step, so what is computed again from them is so within one.
    """
    again = host.measurement.recomputation
    if again is None or again.share < COMPUTED_AGAIN:
        return False
    return host.measurement.kind in TRAINING or not nearly_all_recurs(host)


def most_of_model(host: HostFeatures) -> float:
    """What a finding of what the model itself costs weighs at most: it is what is left when all else is mended.

    Where most of the step is the model's it may come before lesser stalls, unless much of it is computed again, or most
    of it learns nothing: how fast that is computed depends on the machine, and that it need not be does not.
    """
    again, frozen = host.measurement.recomputation, host.measurement.frozen
    if frozen is not None:
        repeats = frozen.share * host.phase_s(FORWARD.name) >= MOST * host.model_s
    else:
        repeats = again is not None and again.share >= COMPUTED_AGAIN_LEADS and computes_again(host)
    is_left = host.model_s <= MOSTLY_MODEL * host.step_s or repeats
    return float(WORTH if is_left else OUTRANKS_GROWTH)


def before_model(host: HostFeatures) -> float:
    """What a finding weighs at least that comes before all that is said of the model itself, and after a stall."""
    return 0.9995 * OUTRANKS_GROWTH if host.model_s > MOSTLY_MODEL * host.step_s else 1.0005 * WORTH


def nearly_all_recurs(host: HostFeatures) -> bool:
    """Whether nearly all that operators compute is computed more than once."""
    again = host.measurement.recomputation
    return again is not None and again.recurring >= SAME_DATA


def recomputed(host: HostFeatures) -> str:
    """What is computed again, for a person."""
    again = host.measurement.recomputation
    assert again is not None
    return (
        f"{percent(again.share)} of the operators' time computes what was computed before, from the same values: "
        f"{again.operators:.3g} operators a step"
    )


def computes_on_padding(host: HostFeatures) -> bool:
    """Whether a good part of the step computes on the padding of sequences.

    A program that packs its sequences computes on next to none of it.
    """
    share = host.measurement.model.padding * host.share(FORWARD.name, BACKWARD.name)
    return share >= PADDING and not any(source.lines_calling(file, _PACKS) for file in _model_files(host))


def _model_files(host: HostFeatures) -> set[str]:
    """Files of the program that the model is called from, or written in."""
    files = {host.measurement.model.file, *(module.file for module in host.measurement.modules)}
    files |= {site.file for site in host.sites(modules.FORWARD)}
    return {file for file in files if is_program_file(file)}


def multiplies_zeros(host: HostFeatures) -> bool:
    """Whether a good part of the step multiplies by zeros."""
    return zeros_s(host) >= ZERO_PRODUCTS * host.step_s


def zeros_s(host: HostFeatures) -> float:
    """Seconds a step that go into multiplying by zeros."""
    found = host.measurement.zero_products
    if found is None:
        return 0.0
    return found.forward * host.phase_s(FORWARD.name) + found.backward * host.phase_s(BACKWARD.name)


def zeros(host: HostFeatures) -> str:
    """What is multiplied by zeros, for a person."""
    found = host.measurement.zero_products
    assert found is not None
    taken = percent(zeros_s(host) / host.step_s)
    if found.of_gradients:
        return (
            f"{taken} of a step computes what no loss depends on: on one line, {percent(found.zeros)} of the rows, "
            "whose gradients are zero"
        )
    return f"{taken} of a step multiplies by zeros: on one line, {percent(found.zeros)} of the products"


def largest_phase(host: HostFeatures, besides: tuple[PhaseName, ...] = ()) -> PhaseName:
    """The phase that takes the most of the step, of those that are not left out."""
    names = [name for name in host.seconds if name not in besides]
    return max(names, key=host.phase_s, default=OTHER.name)


def usual_rate(host: HostFeatures) -> float:
    """The share of the machine's peak that layers like the model's reach, at the least."""
    return float(RECURRENT_RATE if is_mostly(host, RECURRENT) else GOOD_RATE)


def _slow_arithmetic(host: HostFeatures) -> list[str]:
    """Whether the arithmetic runs at a rate that is usual for such layers, as far as is known."""
    measured, rate = host.measurement, host.efficiency
    coverage = measured.model.flops_coverage
    if rate is None and measured.model.flops and measured.other_cores >= BUSY_ELSEWHERE:
        return ["other programs took so many cores that the rate of the model's arithmetic is not known"]
    if rate is None or (coverage is not None and coverage < COUNTED_OPS):
        return ["how fast the model computes, compared with this machine's peak, is not known"]
    least = usual_rate(host)
    # Convolutions of few channels write as long as they compute: what that takes is well spent, too.
    writing = min(rate, host.writing_share) if is_mostly(host, CONVOLUTIONS) else 0.0
    if rate + writing >= least:
        return []
    return [
        f"the model's arithmetic runs at {percent(rate)} of this machine's peak; such layers reach {percent(least)}"
    ]
