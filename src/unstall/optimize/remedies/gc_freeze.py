"""Garbage collections that take much of the step: what lives on is left out of them."""

from __future__ import annotations

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy
from unstall.optimize.source.edit import with_statements_after
from unstall.optimize.source.errors import SourceError
from unstall.optimize.source.files import Sources
from unstall.optimize.source.toplevel import with_import
from unstall.text.units import percent

_MIN_SHARE = 0.02
_REMOVED = 0.9  # of the collections' time


class GcFreeze(Remedy):
    """``gc.freeze()`` before the loop: collections then look only at what was made since."""

    name = "gc-freeze"
    brief = "what lives on is left out of garbage collections"
    patterns = ("host-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        share = context.measurement.gc_s / context.measurement.step.mean
        if share < _MIN_SHARE:
            raise NotApplicable(f"garbage collection takes {percent(share)} of the step")
        written = _after_optimizer(context)
        sources, title = written or (None, "gc.freeze() before the first step, at run time")
        return [
            Proposal(
                title,
                speedup_without(share, _REMOVED),
                f"garbage collection takes {percent(share)} of the step, over objects that live on",
                sources=sources,
                settings={"gc_freeze": True},
                key="freeze",
            )
        ]


def _after_optimizer(context: RemedyContext) -> tuple[Sources, str] | None:
    """The sources with the call after an optimizer is made, and what that is called; None where there is no place."""
    for optimizer in context.runtime.optimizers:
        path = context.file_of(optimizer.call)
        if path is None or optimizer.call is None:
            continue
        try:
            module = context.sources.module(path)
            call = module.call(optimizer.call)
            statement = module.statement(call) if call is not None else None
            if not isinstance(statement, cst.SimpleStatementLine):
                continue
            changed = with_import(with_statements_after(module.tree, statement, ["gc.freeze()"]), "gc")
            title = f"gc.freeze() after the optimizer is made ({path.name}:{optimizer.call.line})"
            return context.sources.with_module(path, changed), title
        except SourceError:
            continue
    return None


REMEDY = GcFreeze()
