"""What is needed, and could cost less: an update, a gradient, threads, a layer."""

from __future__ import annotations

from unstall.child.seams import optimizer
from unstall.child.user_files import is_program_file
from unstall.diagnose import page_faults, source
from unstall.diagnose.blame import culprit_at
from unstall.diagnose.dominant_module import own_share
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.gradients import CostlyGradient
from unstall.diagnose.layer_types import CONVOLUTIONS, RECURRENT, is_mostly
from unstall.diagnose.model_causes.base import ModelCause, Suspects, TimedLine, share_of_forward
from unstall.diagnose.patterns.base import BY_REWRITING, UsualRemedy
from unstall.diagnose.placing import count
from unstall.diagnose.thresholds import (
    DEAR_OPTIMIZER,
    FAULTS_FIRST,
    IDLE_TEAM,
    MOSTLY_COUNTED,
    POOR_RATE,
    QUIET,
    SPARE_CORE,
    WORTH,
)
from unstall.records.model import ModuleMeasurement
from unstall.records.report import Culprit
from unstall.records.vocabulary import BACKWARD, FORWARD, OPTIMIZER
from unstall.threshold import Range

_CONVOLVES = frozenset(kind.replace("Transpose", "_transpose").lower() for kind in CONVOLUTIONS) | {"_conv_forward"}
"""Functions of torch that convolve."""


class Update(ModelCause):
    """The optimizer costs more than forward or backward."""

    name = "optimizer"
    sure = True
    by_hand = "sparse=True for large embeddings, fused=True for the rest; no zero_grad(set_to_none=False)"
    calibration = Range(0.8, 1.0, 6.0, "a sparse update also frees backward: one program, 5.8")
    usual_remedy = UsualRemedy(
        "a fused or sparse update",
        Range(0.0, 0.2, 0.9, "the weights are read and written still; sparse ones are not"),
    )

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        passes = (host.phase_s(FORWARD.name), host.phase_s(BACKWARD.name))
        return host.phase_s(OPTIMIZER.name) > min(DEAR_OPTIMIZER * host.model_s, max(passes))

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return host.phase_s(OPTIMIZER.name)

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        return suspects.update or host.caller(optimizer.STEP, share=host.share(OPTIMIZER.name))

    def advice(self, suspects: Suspects) -> str:
        if suspects.update is not None:
            return "compute less in the program's own update, or for several parameters at once"
        return "a cheaper update: fused=True or foreach=True, sparse gradients for large embeddings"


class Backward(TimedLine):
    """One line's gradient costs far more than what it computes."""

    name = "backward"
    by_hand = "take all parts of a tensor at once: `unbind`, `split`, one index for all; sparse=True for embeddings"
    calibration = Range(
        0.7, 1.0, 1.6, "one early step says how backward is divided; what it fills is read again elsewhere"
    )
    usual_remedy = UsualRemedy(
        "an operator with a cheaper gradient", Range(0.0, 0.15, 0.7, "the gradient itself is still needed")
    )

    def line(self, suspects: Suspects) -> CostlyGradient | None:
        # A convolution is costly in forward, too: it is the kernel, not its gradient.
        return None if _convolves(suspects.module) else suspects.gradient

    def advice(self, suspects: Suspects) -> str:
        assert suspects.gradient is not None
        return suspects.gradient.advice


class IdleCores(ModelCause):
    """torch computes on few threads, and cores are idle."""

    name = "threads"
    calibration = Range(0.3, 1.0, 1.1, "there are no more cores; the zoo's twin gains 0.7 of it")
    usual_remedy = UsualRemedy(
        "all cores for torch", Range(0.0, 0.4, 0.95, "operators scale less than their threads: zoo 0.2")
    )

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        leaves_cores = _idle_cores(host) >= SPARE_CORE and "cuda" not in host.measurement.model.device
        # A limit on threads may be meant, a layer of the program's own that costs more is not.
        top = suspects.module
        own = top is not None and is_program_file(top.file)
        return leaves_cores and not (own and _module_s(host, suspects) > self.waste_s(host, suspects))

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        threads = host.measurement.model.threads
        return host.model_s * (1 - threads / (threads + _idle_cores(host)))

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        """The line of the user's that limits torch's threads, if it is in a file that the loop runs through."""
        for file in dict.fromkeys(site.file for site in host.measurement.sites):
            for line in source.lines_calling(file, "set_num_threads"):
                return culprit_at(file, line, host.share(FORWARD.name))
        return super().culprit(host, suspects)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        measured, idle = host.measurement, f"{_idle_cores(host):.1f} of them are idle"
        return [f"torch computes on {measured.model.threads} of {measured.cores:g} cores; {idle}"]

    def advice(self, suspects: Suspects) -> str:
        return "let torch use the cores: remove torch.set_num_threads / OMP_NUM_THREADS"


class _Disproportion(ModelCause):
    """A module out of all proportion.

    Where the memory that it computes in costs nearly as much, that is cured by a line and comes first.
    """

    by_module = True

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        if not self.fits(host, suspects):
            return False
        return page_faults.share(host.measurement) * host.step_s < FAULTS_FIRST * self.waste_s(host, suspects)

    def fits(self, host: HostFeatures, suspects: Suspects) -> bool:
        """Whether the module, or the model, is of this kind."""
        raise NotImplementedError

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return _module_s(host, suspects)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        return share_of_forward(host, suspects)


class Kernel(_Disproportion):
    """It is a convolution."""

    name = "kernel"
    by_hand = "look for a cheaper operator or shape; for convolutions, try memory_format=torch.channels_last"
    usual_remedy = UsualRemedy("a cheaper kernel", Range(0.0, 0.3, 0.8, BY_REWRITING))

    def fits(self, host: HostFeatures, suspects: Suspects) -> bool:
        return _convolves(suspects.module)

    def advice(self, suspects: Suspects) -> str:
        return f"make {_named(suspects)} cheaper: a smaller kernel, downsampling before it, depthwise-separable"


class Layer(_Disproportion):
    """It is another layer, or all of the model computes at a rate far below the machine's peak."""

    name = "model"
    by_hand = "write it with fewer operators, or with one of the library's that does it all"

    def fits(self, host: HostFeatures, suspects: Suspects) -> bool:
        if suspects.module is not None:
            return True
        measured, efficiency = host.measurement, host.efficiency
        coverage = measured.model.flops_coverage or 0.0
        undisturbed = measured.other_cores < QUIET * measured.cores  # else the rate tells of the neighbours
        if efficiency is None or coverage <= MOSTLY_COUNTED or not undisturbed:
            return False
        faulting = page_faults.share(measured)
        if faulting >= 1 - 1 / WORTH or is_mostly(host, RECURRENT):
            return False  # these are known to be slow, and why
        return efficiency < POOR_RATE * (1 - faulting)  # what these take is no matter of the layers

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        if suspects.module is not None:
            return super().waste_s(host, suspects)
        # At the machine's peak the arithmetic alone would be left.
        return host.phase_s(FORWARD.name, BACKWARD.name) * (1 - (host.efficiency or 0.0))

    def advice(self, suspects: Suspects) -> str:
        named = _named(suspects)
        return f"make {named} cheaper: fewer operators, or one of the library's that does it all; a smaller size"


def _convolves(module: ModuleMeasurement | None) -> bool:
    """Whether it is one of torch's convolutions, or calls one; those of graphs have only the name in common."""
    if module is None:
        return False
    forward = source.function_at(module.file, module.line)
    calls = (call.rpartition(".")[2] for call in source.calls_in(module.file, forward))
    return module.type in CONVOLUTIONS or any(call in _CONVOLVES for call in calls)


def _named(suspects: Suspects) -> str:
    return f"{suspects.module.name} ({suspects.module.type})" if suspects.module else "the model"


def _module_s(host: HostFeatures, suspects: Suspects) -> float:
    """Seconds a step of the module that is out of proportion.

    Its share of forward, or where its code is the program's and takes less of both passes, that: it may have no
    gradient.
    """
    top = suspects.module
    assert top is not None
    share, samples = own_share(host.measurement.modules, top), host.blame.of_model()
    if is_program_file(top.file) and (inside := count(host.blame.within(top.file, top.line))):
        share = min(share, inside / count(samples))
    return host.phase_s(FORWARD.name, BACKWARD.name) * share


def _idle_cores(host: HostFeatures) -> float:
    """Cores that torch leaves idle by computing on few threads; what loader workers use is not idle.

    What other programs take counts as idle: they come and go, and a limit on threads stays.
    """
    measured = host.measurement
    threads = measured.model.threads
    if not 0 < threads < IDLE_TEAM * measured.cores / max(1, len(measured.ranks)):
        return 0.0
    return max(0.0, measured.cores - max(host.used_cores, threads)) / max(1, len(measured.ranks))
