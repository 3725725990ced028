"""The norm of a product of two tensors, one for each example, comes of the norms of its factors."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_calls import hot_products
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.rewrites.factored_norm import product_norms
from unstall.optimize.thresholds import FACTORING_SAVES

_PRODUCTS = hot_products(
    product_norms,
    "factored_norm",
    FACTORING_SAVES,
    title="{name} takes norms of products from their factors ({place})",
    because="products of which the norms are taken are {share} of the step",
    none="no hot line of your own takes norms of products of two tensors",
)


class FactoredNorm(Remedy):
    """The functions, or the file's top level, whose products the stack samples fell in."""

    name = "factored-norm"
    brief = "the norms of `einsum('ni,nj->nij', a, b)`, one for each `n`, come of those of `a` and `b`"
    needs = "an einsum of two torch tensors on a hot line of your own, used for the norm of each example's part alone"
    patterns = ("compute-bound", "overhead-bound", "host-bound", "callback-bound")
    exactness = "close"
    never_exact = True  # norms are looked at, and go into a log or a table more often than into a loss

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return _PRODUCTS.proposals(context)


REMEDY = FactoredNorm()
