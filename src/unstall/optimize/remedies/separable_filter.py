"""A filter of each channel that is a column times a row, such as a Gaussian, goes along one axis after the other."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_calls import HotCalls
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.rewrites.separable_filter import by_axes, channel_filters
from unstall.optimize.thresholds import SEPARATING_SAVES

_CALLS = HotCalls(
    channel_filters,
    by_axes,
    SEPARATING_SAVES,
    title="{name} filters along one axis after the other ({place})",
    because="its convolutions take {share} of the step; their filters are assumed to be products",
    none="no hot line of your own filters channels by themselves",
)


class SeparableFilter(Remedy):
    """The functions, or the file's top level, whose convolutions the stack samples fell in."""

    name = "separable-filter"
    brief = "`conv2d` with a filter for each channel goes along one axis after the other, if the filter is a product"
    needs = "`conv2d(..., groups=...)` on a hot line of your own, on a CPU, with a large filter: a blur of 63 by 63"
    patterns = ("compute-bound", "overhead-bound", "input-bound", "host-bound", "callback-bound")
    exactness = "close"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return _CALLS.proposals(context)


REMEDY = SeparableFilter()
