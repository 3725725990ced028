"""What a loop computes in each turn, and nobody reads before it is computed anew, is not computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_modules, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.unread_results import UnreadCall, unread_calls, without
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import LEAST_SHARE, UNREAD_SAVES
from unstall.text.units import percent

_NONE = "no loop of your own calls a function whose result nobody reads"


class UnreadResults(Remedy):
    """Metrics of the epoch so far, say, that are computed again after the loop."""

    name = "unread-results"
    brief = "a call in a loop whose result is bound anew before anybody reads it is left out"
    needs = "a function of the same file that only computes, and an assignment after the loop to the same names"
    patterns = ("callback-bound", "host-bound", "overhead-bound", "compute-bound", "slows-down")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        found = [
            (path, of_line, call) for path, module, of_line in hot_modules(context) for call in unread_calls(module)
        ]
        return proposals_by_file(found, partial(_proposal, context), _NONE)


def _proposal(context: RemedyContext, path: Path, of_line: Mapping[int, float], call: UnreadCall) -> Proposal:
    module, name = context.sources.module(path), call.function.name.value
    share = share_on(of_line, module.lines(call.line, call.function))
    if share < LEAST_SHARE:
        raise NotApplicable(f"{name}, whose result nobody reads, takes {percent(share)} of the step")
    line = module.first_line(call.line)
    return Proposal(
        f"{name} is not called in each turn, as nobody reads what it gives ({path.name}:{line})",
        speedup_without(share, UNREAD_SAVES),
        f"{name} takes {percent(share)} of the step",
        sources=context.sources.with_module(path, without(module, call)),
        key=context.key(path, line),
        lines=Lines.of(path, module, call.line, call.function),
    )


REMEDY = UnreadResults()
