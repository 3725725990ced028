"""What can be made cheaper about a model's mathematics: one object each, with all that is to be known of it."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import msgspec

from unstall.child.seams import modules
from unstall.child.user_files import is_program_file
from unstall.diagnose.attention import WrittenOut, written_out
from unstall.diagnose.blame import culprit_at
from unstall.diagnose.copying import CopyingLine, copying_line
from unstall.diagnose.dominant_module import dominant_module, own_share
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.gradients import CostlyGradient, costly_gradient
from unstall.diagnose.health import multiplies_zeros
from unstall.diagnose.patterns.base import UsualRemedy
from unstall.records.model import ModuleMeasurement, ZeroProducts
from unstall.records.report import Culprit
from unstall.records.vocabulary import FORWARD
from unstall.text.units import percent
from unstall.threshold import Range


class Suspects(NamedTuple):
    """What of the model may be out of proportion; None for what is not."""

    module: ModuleMeasurement | None
    gradient: CostlyGradient | None
    update: Culprit | None
    """The function that holds the optimizer's time, where that is the program's own and not a library's."""
    copying: CopyingLine | None
    """A line that only moves data."""
    products: ZeroProducts | None
    """Products with zeros."""
    attention: WrittenOut | None
    """Attention in separate operators."""

    @classmethod
    def of(cls, host: HostFeatures) -> Suspects:
        """Those of a run."""
        products = host.measurement.zero_products if multiplies_zeros(host) else None
        return cls(
            dominant_module(host),
            costly_gradient(host),
            host.own_update,
            copying_line(host),
            products,
            written_out(host),
        )


class ModelCause:
    """Base of all. One that can be blamed for the whole model, unless it says for what."""

    name: ClassVar[str]
    sure: ClassVar[bool] = False
    """Whether it is seen, and not inferred from rates."""
    doing: ClassVar[str] = "model math"
    """What the step does meanwhile, in a headline."""
    by_module: ClassVar[bool] = False
    """Whether the times of the modules say more of it."""
    cured_by_a_line: ClassVar[bool] = False
    """Whether `optimize` cures it by a line, which is worth it for less."""
    by_hand: ClassVar[str] = ""
    """What a person can do where no remedy can."""
    calibration: ClassVar[Range | None] = None
    """How many times the estimate the truth is; None: as for any model."""
    usual_remedy: ClassVar[UsualRemedy | None] = None
    """None: as for any model."""

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        """Whether it is to blame, where no cause before it is."""
        raise NotImplementedError

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        """Seconds a step that would be saved if what is blamed cost nothing."""
        raise NotImplementedError

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        """Where it is: in the model, above all in the module that is out of proportion."""
        top = suspects.module
        in_top = host.blame.within(top.file, top.line) if top is not None and is_program_file(top.file) else []
        in_model = host.blame.model_culprit(in_top)
        culprit = in_model or host.caller(modules.FORWARD, share=host.share(FORWARD.name))
        if culprit is not None and top is not None:
            via = f"{top.name or 'the model'}: {top.type}({top.detail})"[:100]
            return msgspec.structs.replace(culprit, via=via)
        return culprit

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        """What shows it."""
        return []

    def advice(self, suspects: Suspects) -> str:
        """What to do."""
        raise NotImplementedError


class TimedLine(ModelCause):
    """A line whose operators were timed, and take more of the step than they should."""

    sure = True

    def line(self, suspects: Suspects) -> CopyingLine | WrittenOut | CostlyGradient | None:
        """The line, where it is out of proportion."""
        raise NotImplementedError

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return self.line(suspects) is not None

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        line = self.line(suspects)
        assert line is not None
        return line.share * host.step_s

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        line = self.line(suspects)
        assert line is not None
        return culprit_at(line.frame.file, line.frame.line, line.share)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        line = self.line(suspects)
        assert line is not None
        return [line.sentence]


def share_of_forward(host: HostFeatures, suspects: Suspects) -> list[str]:
    """How much of it the module that is out of proportion takes."""
    top = suspects.module
    if top is None:
        return []
    own = percent(own_share(host.measurement.modules, top))
    return [f"{top.name or top.type} ({top.type}) takes {own} of forward"]
