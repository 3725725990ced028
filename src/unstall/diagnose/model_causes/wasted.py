"""What a model computes and nothing needs."""

from __future__ import annotations

from unstall.child.user_files import is_program_file
from unstall.diagnose.blame import culprit_at
from unstall.diagnose.double_precision import saved_by_single
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.health import computes_on_padding, wasted_gradients, wastes_gradients, zeros, zeros_s
from unstall.diagnose.model_causes.base import ModelCause, Suspects, share_of_forward
from unstall.diagnose.patterns.base import UsualRemedy
from unstall.records.report import Culprit
from unstall.records.vocabulary import BACKWARD, FORWARD
from unstall.text.units import percent
from unstall.threshold import Range


class Precision(ModelCause):
    """It computes in float64."""

    name = "precision"
    sure = True
    by_hand = 'compute in float32 or bfloat16; on a GPU, also try torch.set_float32_matmul_precision("high")'
    calibration = Range(0.6, 1.0, 1.6, "the zoo's twin gains 1.0 of it; some CPUs more")
    usual_remedy = UsualRemedy("float32", Range(0.0, 0.1, 0.5, "half the bytes, twice the lanes: zoo 0"))

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return host.measurement.model.dtype == "torch.float64"

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return saved_by_single(host.measurement) * host.model_s

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        return [
            "its parameters are float64: twice the memory and half the arithmetic rate of float32 or worse",
            *share_of_forward(host, suspects),
        ]

    def advice(self, suspects: Suspects) -> str:
        return "use float32 (model.float(), no set_default_dtype(float64)), or bfloat16"


class UnusedGradients(ModelCause):
    """It computes gradients that no optimizer uses."""

    name = "gradients"
    sure = True
    by_hand = "freeze them: `requires_grad_(False)`, and call what only they are in under `torch.no_grad()`"
    calibration = Range(
        0.5, 1.0, 2.0, "parameters are no measure of time; without gradients, forward keeps nothing either"
    )
    usual_remedy = UsualRemedy("frozen parameters", Range(0.0, 0.05, 0.4, "what is not computed is free"))

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return wastes_gradients(host)

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return host.phase_s(BACKWARD.name) * host.measurement.model.wasted_backward

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        model = host.measurement.model
        dropped = model.dropped
        if dropped is not None and dropped.frames and dropped.share > model.unused_gradients:
            frame = dropped.frames[-1]
            return culprit_at(frame.file, frame.line, host.share(BACKWARD.name), via=dropped.model)
        if model.file:
            via = ", ".join(model.idle_parts)[:100]
            return culprit_at(model.file, model.line, host.share(BACKWARD.name), via)
        return super().culprit(host, suspects)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        return [wasted_gradients(host)]

    def advice(self, suspects: Suspects) -> str:
        return (
            "compute no gradients that nothing uses: requires_grad_(False) for what is not trained, and "
            "torch.no_grad() around what only it is in, or .detach() its output"
        )


class Padding(ModelCause):
    """It computes on the padding of sequences."""

    name = "padding"
    by_hand = "pad a batch to its own longest row, and make batches of rows of like length"
    calibration = Range(0.5, 1.0, 1.5, "attention takes the square of the length; what is no layer of tokens stays")
    usual_remedy = UsualRemedy(
        "batches without padding", Range(0.0, 0.25, 0.9, "rows of one batch differ in length still")
    )

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return computes_on_padding(host)

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return host.phase_s(FORWARD.name, BACKWARD.name) * host.measurement.model.padding

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        loader = host.measurement.loader
        for file, line in (loader.collate_at, loader.samples_at) if loader is not None else ():
            if is_program_file(file):  # the program's own function makes a batch of samples, or the samples
                return culprit_at(file, line, host.share(FORWARD.name, BACKWARD.name))
        return super().culprit(host, suspects)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        model = host.measurement.model
        everywhere = f", {percent(model.spare)} in every row" if model.spare else ""
        return [f"{percent(model.padding)} of the positions in a batch are padding{everywhere}"]

    def advice(self, suspects: Suspects) -> str:
        return "draw batches of rows of like length, and pad each to its own longest row"


class Zeros(ModelCause):
    """It multiplies by zeros, or computes what no loss depends on."""

    name = "zeros"
    sure = True
    by_hand = "select the rows that count before the layers; index, group or band what a product with zeros picks"
    calibration = Range(0.6, 1.2, 2.2, "one program, two machines: 1.5; one early cycle says how many zeros")
    usual_remedy = UsualRemedy(
        "products of what counts", Range(0.0, 0.05, 0.4, "zoo: 0; two programs of others 0 and 0.09")
    )

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return suspects.products is not None and suspects.gradient is None  # a slice's gradient is mostly zeros, too

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return zeros_s(host)

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        assert suspects.products is not None
        frame = suspects.products.frames[-1]
        return culprit_at(frame.file, frame.line, zeros_s(host) / host.step_s)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        return [zeros(host)]

    def advice(self, suspects: Suspects) -> str:
        if suspects.products is not None and suspects.products.of_gradients:
            return "compute the rows that a loss depends on alone: select them before the layers that make them"
        return (
            "leave out the products with zeros: an index or an embedding for rows of ones and zeros, a grouped or "
            "depthwise convolution or a band for a kernel that mixes few channels, or a sparse tensor"
        )
