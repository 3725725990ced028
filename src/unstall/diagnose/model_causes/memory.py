"""What the model computes in: memory that the kernel gives anew in every step."""

from __future__ import annotations

from unstall.diagnose import page_faults
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.model_causes.base import ModelCause, Suspects
from unstall.diagnose.patterns.base import UsualRemedy
from unstall.records.report import Culprit
from unstall.threshold import Range


class PageFaults(ModelCause):
    """The memory of its activations is given back to the kernel and taken anew, page by page."""

    name = "page-faults"
    doing = "model math, in memory that the kernel gives anew"
    cured_by_a_line = True
    calibration = Range(
        0.5, 1.0, 2.0, "a virtual machine's host takes its part too, and no guest sees it: two programs 0.95 and 1.4"
    )
    usual_remedy = UsualRemedy("keeping freed memory", Range(0.0, 0.1, 0.7, "the first steps take it still"))

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return page_faults.evidence(host.measurement) is not None

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        return page_faults.share(host.measurement) * host.step_s

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        """None: it is the allocator's way, whatever line asks for memory."""
        return None

    def advice(self, suspects: Suspects) -> str:
        return page_faults.ADVICE
