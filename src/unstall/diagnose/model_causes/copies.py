"""A line that only moves data for a good part of the step."""

from __future__ import annotations

from unstall.diagnose.copying import CopyingLine
from unstall.diagnose.model_causes.base import Suspects, TimedLine
from unstall.diagnose.patterns.base import BY_REWRITING, UsualRemedy
from unstall.threshold import Range


class Copies(TimedLine):
    """One line joins or copies tensors."""

    name = "copies"
    by_hand = "join the parts once: collect them in a list, or write them into a tensor of the final size"
    usual_remedy = UsualRemedy("joining once", Range(0.0, 0.3, 0.98, BY_REWRITING))

    def line(self, suspects: Suspects) -> CopyingLine | None:
        return suspects.copying

    def advice(self, suspects: Suspects) -> str:
        return "join the parts once, not piece by piece: a list and one torch.cat, or a tensor of the final size"
