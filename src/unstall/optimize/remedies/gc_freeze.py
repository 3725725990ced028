"""Garbage collections that take much of the step: what lives on is left out of them."""

from __future__ import annotations

from contextlib import suppress

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy
from unstall.optimize.remedies.compiled_model import with_line_after_optimizer
from unstall.optimize.source.files import Sources
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
        sources: Sources | None = None
        title = "gc.freeze() before the first step, at run time"
        with suppress(NotApplicable):
            sources, where = with_line_after_optimizer(context, "gc.freeze()", imports="gc")
            title = f"gc.freeze() after the optimizer is made ({where})"
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


REMEDY = GcFreeze()
