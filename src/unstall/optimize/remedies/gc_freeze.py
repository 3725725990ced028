"""Garbage collections that take much of the step: what lives on is left out of them."""

from __future__ import annotations

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.observed import ObservedOptimizer
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, first_of, in_source
from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.toplevel import with_import
from unstall.optimize.thresholds import FROZEN_COLLECTIONS_SAVES, LEAST_COLLECTING
from unstall.text.units import percent


class GcFreeze(Remedy):
    """``gc.freeze()`` before the loop: collections then look only at what was made since."""

    name = "gc-freeze"
    brief = "long-lived objects are left out of garbage collection"
    needs = "garbage collections that take 2 % of the step"
    patterns = ("host-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        share = context.measurement.gc_s / context.measurement.step.mean
        if share < LEAST_COLLECTING:
            raise NotApplicable(f"garbage collection takes {percent(share)} of the step")
        sources, place = in_source(lambda: _frozen_after_optimizer(context), "before the first step, at run time")
        return [
            Proposal(
                f"gc.freeze() {place}",
                speedup_without(share, FROZEN_COLLECTIONS_SAVES),
                f"garbage collection takes {percent(share)} of the step, over objects that live on",
                sources=sources,
                settings={"gc_freeze": True},
                key="freeze",
            )
        ]


def _frozen_after_optimizer(context: RemedyContext) -> tuple[Sources, str]:
    """The sources with the call after an optimizer is made, and its place. Raises NotApplicable where none is."""
    nowhere = "the optimizer is not made in the program's own code"
    return first_of(context.runtime.optimizers, lambda optimizer: _frozen_after(context, optimizer), nowhere)


def _frozen_after(context: RemedyContext, optimizer: ObservedOptimizer) -> tuple[Sources, str]:
    path, module, call = context.locate(optimizer.call)
    line = module.statement(call)
    if not isinstance(line, cst.SimpleStatementLine):
        raise NotApplicable("the optimizer is made in the head of a block")
    tree = with_import(replaced(module.tree, line, line, statement(module.tree, "gc.freeze()")), "gc")
    place = f"after the optimizer is made ({path.name}:{module.first_line(call)})"
    return context.sources.with_module(path, tree), place


REMEDY = GcFreeze()
