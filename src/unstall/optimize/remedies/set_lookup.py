"""A list that only grows, and is searched from its beginning each time, is looked up in a set beside it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_files
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.set_lookup import looked_up, lookups
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import LEAST_GROWING, LOOKING_UP_SAVES
from unstall.text.units import percent

_NONE = "no hot line of your own asks by `in`"


class SetLookup(Remedy):
    """The lines with ``in`` that the stack samples fell in."""

    name = "set-lookup"
    brief = "`x in seen`, where `seen` is a long list that only grows, asks a set beside it"
    needs = "`in` on a hot line of your own, and a list of plain values that your file changes by adding to it alone"
    patterns = ("slows-down", "host-bound", "input-bound", "callback-bound", "environment-bound", "memory-growth")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            ((path, line, share) for path, of_line in hot_files(context).items() for line, share in of_line.items()),
            partial(_proposal, context),
            _NONE,
        )


def _proposal(context: RemedyContext, path: Path, line: int, share: float) -> Proposal:
    module = context.sources.module(path)
    found = list(lookups(module, line))
    if not found or share < LEAST_GROWING:
        raise NotApplicable(_NONE)
    return Proposal(
        f"looks up in a set ({path.name}:{line})",
        speedup_without(share, LOOKING_UP_SAVES),
        f"the line takes {percent(share)} of the step",
        sources=context.sources.with_module(path, looked_up(module, found)),
        key=context.key(path, line),
        lines=Lines.of(path, module, *found),
    )


REMEDY = SetLookup()
