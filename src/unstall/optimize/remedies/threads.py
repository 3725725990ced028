"""The number of threads of torch's operators: as many as cores, or fewer where they only get in each other's way."""

from __future__ import annotations

from contextlib import suppress

import libcst as cst

from unstall.model.thresholds import PARALLEL
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy, first_of
from unstall.optimize.source.edit import replaced
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.places import CallSite
from unstall.optimize.source.toplevel import with_statement_after_imports
from unstall.optimize.thresholds import QUEUEING
from unstall.text.units import percent


class Threads(Remedy):
    """Other thread counts than the one in force."""

    name = "threads"
    brief = "more or fewer threads for torch's operators"
    needs = "a model on the processor"
    patterns = ("compute-bound", "input-bound", "overhead-bound", "oversubscribed")
    exactness = "close"
    """Sums over threads are added in another order."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        if context.on_gpu:
            raise NotApplicable("the model runs on a GPU")
        now = context.measurement.model.threads or context.runtime.threads or 0
        if not now:
            raise NotApplicable("torch's thread count is not known")
        counts = sorted({1, max(1, context.cores // 2), context.cores} - {now})
        if not counts:
            raise NotApplicable(f"{now} threads are as many as there are cores")
        return [_with_threads(context, now, count) for count in counts]


def _with_threads(context: RemedyContext, now: int, count: int) -> Proposal:
    """So many threads, set in the source, or at run time where they cannot be written there."""
    model = context.share("forward", "backward", "optimizer")
    predicted, because = predict(model, now, count, contended=is_contended(context))
    sources = None
    with suppress(NotApplicable):
        sources = _at_start(context, count)
    with suppress(NotApplicable):
        sites = context.runtime.thread_settings
        sources = first_of(sites, lambda site: _where_set(context, site, count), "it is set nowhere")
    return Proposal(
        f"{count} thread{'s' if count > 1 else ''} for torch's operators instead of {now}",
        predicted,
        because,
        sources=sources,
        settings={"threads": count},
        key=str(count),
        competes_for_cores=True,
    )


def is_contended(context: RemedyContext) -> bool:
    """Whether threads wait for cores: loader workers compute beside the model, or its own threads queue."""
    measured = context.measurement
    workers = measured.loader.workers if measured.loader else 0
    queueing = max(measured.team_delay_s / measured.step.mean, measured.run_delay or 0.0)
    return bool(workers) or queueing > QUEUEING


def predict(model: float, now: int, count: int, *, contended: bool) -> tuple[float, str]:
    """(predicted speed-up, why): Amdahl with a parallel part for more threads; for fewer, what contention may cost."""
    if count > now:
        left = 1 - model * PARALLEL * (1 - now / count)
        return 1 / left, f"the model takes {percent(model)} of the step, on {now} of {count} possible threads"
    if contended:
        return 1.06, "its threads and others contend for cores: fewer may be faster"
    return 1.02, "small operators may run better with fewer threads"


def _where_set(context: RemedyContext, site: CallSite, count: int) -> Sources:
    """The program sets the count itself: another number there."""
    path, module, call = context.locate(site, "set_num_threads")
    if len(call.args) != 1:
        raise NotApplicable("the count is not given as one number")
    changed = call.with_deep_changes(call.args[0], value=cst.Integer(str(count)))
    return context.sources.with_module(path, replaced(module.tree, call, changed))


def _at_start(context: RemedyContext, count: int) -> Sources:
    """A line after the imports of the script."""
    path, module, torch = context.script_with("torch")
    changed = with_statement_after_imports(module.tree, f"{torch}.set_num_threads({count})")
    return context.sources.with_module(path, changed)


REMEDY = Threads()
