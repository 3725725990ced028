"""Convolutions on tensors whose channels lie next to each other, as oneDNN and cuDNN compute them fastest."""

from __future__ import annotations

from unstall.diagnose.layer_types import CONVOLUTIONS_2D, share_of_types
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import CHANNELS_LAST_SAVES, LEAST_SHARE
from unstall.optimize.whole_models import NEEDS, with_statements
from unstall.text.units import percent


class ChannelsLast(Remedy):
    """The memory format of the model's weights: what it computes takes on that of what it is given, or of these."""

    name = "channels-last"
    brief = "`model.to(memory_format=torch.channels_last)`: images with their channels last in memory"
    needs = f"two-dimensional convolutions in {NEEDS}"
    patterns = ("compute-bound",)
    exactness = "close"
    """Other kernels add in another order."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        convolving = share_of_types(context.measurement.modules, CONVOLUTIONS_2D)
        share = context.share("forward", "backward") * convolving
        if share < LEAST_SHARE:
            raise NotApplicable(f"two-dimensional convolutions take {percent(share)} of the step")
        sources, title = with_statements(
            context, lambda model, torch: f"{model}.to(memory_format={torch}.channels_last)", uses_torch=True
        )
        because = f"two-dimensional convolutions take {percent(share)} of the step"
        return [
            Proposal(title, speedup_without(share, CHANNELS_LAST_SAVES), because, sources=sources, key="all models")
        ]


REMEDY = ChannelsLast()
