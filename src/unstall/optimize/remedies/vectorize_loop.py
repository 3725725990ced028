"""An element-wise Python loop over pixels or cells, as array operations that give the same bits."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_loops import loop_proposals
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.thresholds import VECTORIZED_LOOP_SAVES
from unstall.optimize.vectorize import vectorize


class VectorizeLoop(Remedy):
    """The loops that the stack samples fell into, those that can be written with arrays."""

    name = "vectorize-loop"
    brief = "an element-wise Python loop over pixels or cells becomes array operations"
    needs = "a loop over ranges, in a file that imports NumPy, in which no iteration depends on another"
    patterns = ("input-bound", "host-bound", "environment-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return loop_proposals(
            context,
            vectorize,
            written="as array operations",
            removed=VECTORIZED_LOOP_SAVES,
            otherwise="no loop over pixels or cells takes a noticeable share",
        )


REMEDY = VectorizeLoop()
