"""A sum of a product that is spread over more axes than either side has is one contraction: nothing of it is stored."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_calls import hot_products
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.rewrites.contracted_sum import contractions
from unstall.optimize.thresholds import CONTRACTING_SAVES

_PRODUCTS = hot_products(
    contractions,
    "contracted",
    CONTRACTING_SAVES,
    title="{name} sums its products as it makes them ({place})",
    because="products that are summed take {share} of the step",
    none="no hot line of your own sums a product of tensors that is spread over more axes",
)


class ContractedSum(Remedy):
    """The functions, or the file's top level, whose products the stack samples fell in."""

    name = "contracted-sum"
    brief = "`(a[:, None] * b).sum(-1)`, and an einsum that sums another's result, are one contraction"
    needs = "a product of two torch tensors on a hot line of your own that is made to be summed over some axes"
    patterns = ("compute-bound", "overhead-bound", "input-bound", "host-bound", "callback-bound")
    exactness = "close"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return _PRODUCTS.proposals(context)


REMEDY = ContractedSum()
