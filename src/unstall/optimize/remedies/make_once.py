"""What is made anew for every sample or step, from the same things each time, is made once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_functions, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.make_once import Made, made_in, making_once, refuse_kept
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import LEAST_SHARE, MADE_ONCE_SAVES
from unstall.text.units import percent

_NONE = "no hot line of the program's own makes a library's object from what is the same each time"


class MakeOnce(Remedy):
    """The lines that the stack samples fell in, of functions of the program's own."""

    name = "make-once"
    brief = "an object of a library (a transform, a tokenizer, a table) that is made in every call is made once"
    needs = "`name = Maker(...)` on a hot line, from imports, constants and attributes of `self` alone"
    patterns = ("input-bound", "host-bound", "overhead-bound", "callback-bound", "environment-bound", "compute-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            (
                (path, made, of_line)
                for (path, function), of_line in hot_functions(context).items()
                for made in made_in(context.sources.module(path), function)
            ),
            partial(_proposal, context),
            _NONE,
        )


def _proposal(context: RemedyContext, path: Path, made: Made, of_line: Mapping[int, float]) -> Proposal:
    module = context.sources.module(path)
    first, share = module.first_line(made.line), share_on(of_line, module.lines(made.line))
    if share < LEAST_SHARE:
        raise NotApplicable(_NONE)
    refuse_kept(module, made)
    return Proposal(
        f"{made.name.value} is made once ({path.name}:{first})",
        speedup_without(share, MADE_ONCE_SAVES),
        f"making it takes {percent(share)} of the step",
        sources=context.sources.with_module(path, making_once(module, made)),
        key=context.key(path, first),
        lines=Lines.of(path, module, made.line),
    )


REMEDY = MakeOnce()
