"""A line that only moves data for a good part of the step."""

from __future__ import annotations

from unstall.diagnose.blame import culprit_at
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.model_causes.base import ModelCause, Suspects
from unstall.diagnose.patterns.base import BY_REWRITING, UsualRemedy
from unstall.records.report import Culprit
from unstall.threshold import Range


class Copies(ModelCause):
    """One line joins or copies tensors."""

    name = "copies"
    sure = True
    by_hand = "join the parts once: collect them in a list, or write them into a tensor of the final size"
    usual_remedy = UsualRemedy("joining once", Range(0.0, 0.3, 0.98, BY_REWRITING))

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return suspects.copying is not None

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        assert suspects.copying is not None
        return suspects.copying.share * host.step_s

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        line = suspects.copying
        assert line is not None
        return culprit_at(line.frame.file, line.frame.line, line.share)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        assert suspects.copying is not None
        return [suspects.copying.sentence]

    def advice(self, suspects: Suspects) -> str:
        return "join the parts once, not piece by piece: a list and one torch.cat, or a tensor of the final size"
