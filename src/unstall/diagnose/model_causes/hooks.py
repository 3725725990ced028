"""Python code of the program's that backward calls: hooks on tensors and modules, functions with their own gradient."""

from __future__ import annotations

from unstall.diagnose import backward_lines
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.model_causes.base import ModelCause, Suspects
from unstall.diagnose.patterns.base import BY_REWRITING, UsualRemedy
from unstall.diagnose.thresholds import HOOKED
from unstall.records.report import Culprit
from unstall.records.vocabulary import BACKWARD
from unstall.text.units import percent
from unstall.threshold import Range


class Hooks(ModelCause):
    """Backward spends its time in functions that it calls, not in the gradients that autograd computes."""

    name = "hooks"
    sure = True
    by_hand = "compute less in what backward calls, or for several parameters or steps at once"
    usual_remedy = UsualRemedy("cheaper hooks", Range(0.0, 0.3, 0.98, BY_REWRITING))

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return _share(host) >= HOOKED

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return _share(host) * host.step_s

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        in_backward = host.blame.in_phase(BACKWARD.name)
        return host.blame.main_culprit([placed for placed in in_backward if backward_lines.is_called(placed)])

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        return [f"{percent(_share(host))} of a step is Python code that backward calls, like hooks"]

    def advice(self, suspects: Suspects) -> str:
        return "make what backward calls cheaper: fewer and larger operators, no one-hot or full-size tensors"


def _share(host: HostFeatures) -> float:
    """Of the step."""
    return host.share(BACKWARD.name) * host.blame.called_share
