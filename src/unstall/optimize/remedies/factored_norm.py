"""The norm of a product of two tensors, one for each example, comes of the norms of its factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_calls import HotCalls
from unstall.optimize.hot_lines import Part
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.factored_norms import factored, product_norms
from unstall.optimize.source.module import SourceModule
from unstall.optimize.thresholds import FACTORING_SAVES


def _found(module: SourceModule, part: Part) -> Iterator[cst.CSTNode]:
    for each in product_norms(module, part):
        yield from each.nodes


def _changed(module: SourceModule, nodes: Sequence[cst.CSTNode]) -> cst.Module:
    part = module.enclosing(nodes[0], cst.FunctionDef) or module.tree
    return factored(module, list(product_norms(module, part)))


_CALLS = HotCalls(
    _found,
    _changed,
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
        return _CALLS.proposals(context)


REMEDY = FactoredNorm()
