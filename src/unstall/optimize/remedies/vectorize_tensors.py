"""A Python loop over the rows, heads, groups or pairs of torch tensors, as ``torch.vmap`` of one turn."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_loops import loop_proposals
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.thresholds import VECTORIZED_TENSORS_SAVES
from unstall.optimize.vectorize import mapped


class VectorizeTensors(Remedy):
    """The loops that the stack samples fell into, or into what they call, those whose turns only compute."""

    name = "vectorize-tensors"
    brief = "a Python loop over rows, heads, groups or pairs of tensors becomes `torch.vmap` of one turn"
    needs = "iterations that only compute with tensors, with no random numbers or output"
    patterns = ("overhead-bound", "host-bound", "compute-bound")
    exactness = "close"
    """Sums and matrix products of another size add in another order."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return loop_proposals(
            context,
            mapped,
            written="with torch.vmap",
            removed=VECTORIZED_TENSORS_SAVES,
            otherwise="no loop over tensors takes a noticeable share",
        )


REMEDY = VectorizeTensors()
