"""A loop that calls the model for one item at a time calls it for many at once, and goes on with each in its turn."""

from __future__ import annotations

from collections.abc import Iterator

from unstall.optimize.batching.loops import NotInLoop, split_loop
from unstall.optimize.batching.writer import with_batches
from unstall.optimize.context import RemedyContext
from unstall.optimize.observed import ObservedModelCall
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_of
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable, located
from unstall.optimize.source.files import Sources
from unstall.optimize.source.places import CallSite
from unstall.optimize.thresholds import (
    BATCHED_BYTES,
    BATCHED_CALLS_MAY_SAVE,
    BATCHED_CALLS_SAVES,
    BATCHED_ITEMS,
    LEAST_MODEL,
    REACHED_PEAK,
)
from unstall.text.units import percent


class BatchCalls(Remedy):
    """Loops of a program that trains nothing, in which the model is called for one item."""

    name = "batch-calls"
    brief = (
        f"a loop that calls the model, or a function around it, for one item calls it for up to {BATCHED_ITEMS} at once"
    )
    needs = "a program that trains nothing, and a loop or a list comprehension over a collection with a length"
    patterns = ("overhead-bound",)
    exactness = "close"
    """Matrix products of another size add in another order."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        if context.trains:
            raise NotApplicable("the program trains")
        if any(not loader.map_style for loader in context.runtime.loaders):
            raise NotApplicable("its dataset is iterable: it may be a stream, which is not known ahead")
        share = context.share("forward")
        if share < LEAST_MODEL:
            raise NotApplicable(f"the model takes {percent(share)} of the step")
        return proposals_of(
            (call for call in context.runtime.model_calls if size_of(call) > 1),
            lambda call: _proposal(context, call, share),
            "no call of the model with one item, of a size to have several at once, was seen in the program's own code",
        )


def _proposal(context: RemedyContext, observed: ObservedModelCall, share: float) -> Proposal:
    sources, call, called = in_batches(context, observed)
    size = size_of(observed)
    return Proposal(
        f"{called} called for {size} items at once in {call.function} ({call.file.name}:{call.line})",
        speedup_without(share, removed(context)),
        f"its calls for one item take {percent(share)} of the step",
        sources=sources,
        batches_model_calls=True,
        key=context.key(call.file, call.line, called),
    )


def size_of(call: ObservedModelCall) -> int:
    """Items in a call, as far as memory allows; 1 where the model is given many already."""
    shapes = call.shapes
    if not shapes or not shapes[0] or (len(shapes[0]) > 1 and shapes[0][0] != 1):
        return 1
    return min(BATCHED_ITEMS, BATCHED_BYTES // max(1, call.bytes))


def removed(context: RemedyContext) -> float:
    """The part of the model's time that is not its arithmetic: it is paid once for many items."""
    model, forward = context.measurement.model, context.measurement.phase_s("forward")
    if not model.flops or not model.peak_flops or not forward:
        return BATCHED_CALLS_SAVES if context.report.verdict.pattern == "overhead-bound" else BATCHED_CALLS_MAY_SAVE
    return max(0.0, min(BATCHED_CALLS_SAVES, 1 - model.flops / (REACHED_PEAK * model.peak_flops) / forward))


def in_batches(context: RemedyContext, observed: ObservedModelCall) -> tuple[Sources, CallSite, str]:
    """(the sources, the call in the loop, what it calls) with the loop around the model's call running ahead.

    Where the function that calls the model has no loop, it is the loop around the call of that function: the function
    must then do for many items what it does for one. Raises NotApplicable where the loop may not run ahead.
    """
    for number, (call, called) in enumerate(_call_chain(observed)):
        path = context.user_file(call.file)
        if path is None:
            raise AnalysisRefused("the model is called in a library")
        module = context.sources.module(path)
        try:
            with located(path.name):
                loop = split_loop(module, call)
        except NotInLoop:
            continue
        stacked = number == 0 and len(observed.shapes[0]) == 1  # an item has no dimension of items
        tree = with_batches(loop, size_of(observed), stacked=stacked)
        return context.sources.with_module(path, tree), call, called
    raise AnalysisRefused("the call is in no loop of the program's own")


def _call_chain(observed: ObservedModelCall) -> Iterator[tuple[CallSite, str]]:
    """(call, what it calls): of the model, of the function that calls it, of that one's caller, and so on."""
    called = "the model"
    for call in (observed.call, *observed.callers):
        if call is not None:
            yield call, called
            called = call.function


REMEDY = BatchCalls()
