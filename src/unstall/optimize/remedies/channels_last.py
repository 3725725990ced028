"""Convolutions with the channels innermost in memory, as their fastest kernels want them."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy
from unstall.optimize.remedies.compiled_model import with_line_after_optimizer
from unstall.text.units import percent

_REMOVED = 0.2  # of the convolutions' time
_MIN_SHARE = 0.3
_CONVOLUTIONS = ("Conv2d", "ConvTranspose2d")


class ChannelsLast(Remedy):
    """For a model whose time is in two-dimensional convolutions."""

    name = "channels-last"
    brief = "convolutions with their channels innermost in memory"
    patterns = ("compute-bound",)
    exactness = "close"
    """Another kernel sums in another order."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        modules = context.measurement.modules
        total = sum(module.self_s for module in modules) or 1.0
        part = sum(module.self_s for module in modules if module.type in _CONVOLUTIONS) / total
        share = part * context.share("forward", "backward")
        if share < _MIN_SHARE:
            raise NotApplicable(f"convolutions take {percent(share)} of the step")
        sources, where = with_line_after_optimizer(context, "{model}.to(memory_format={torch}.channels_last)")
        return [
            Proposal(
                f"memory_format=torch.channels_last ({where})",
                speedup_without(share, _REMOVED),
                f"convolutions take {percent(share)} of the step",
                sources=sources,
                key="channels-last",
            )
        ]


REMEDY = ChannelsLast()
