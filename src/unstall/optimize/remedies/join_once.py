"""Pieces that a loop joins one after the other are collected in a list, and joined once behind it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_modules, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.join_once import LoopJoin, loop_joins, once, refuse_shared
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import JOINING_ONCE_SAVES, LEAST_SHARE
from unstall.text.units import percent

_NONE = "no hot loop of the program's own joins an array or a tensor piece by piece"


class JoinOnce(Remedy):
    """The loops with a join that the stack samples fell in."""

    name = "join-once"
    brief = "a loop that joins a piece to a tensor or array in every turn collects the pieces, and joins them once"
    needs = "`x = torch.cat([x, piece])` or NumPy's like in a loop of your own that does nothing else with `x`"
    patterns = ("compute-bound", "overhead-bound", "host-bound", "input-bound", "callback-bound", "environment-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            ((path, found, of_line) for path, module, of_line in hot_modules(context) for found in loop_joins(module)),
            partial(_proposal, context),
            _NONE,
        )


def _proposal(context: RemedyContext, path: Path, found: LoopJoin, of_line: Mapping[int, float]) -> Proposal:
    module, call = context.sources.module(path), found.join.call
    first, share = module.first_line(call), share_on(of_line, module.lines(call))
    if share < LEAST_SHARE:
        raise NotApplicable(_NONE)
    refuse_shared(module, found)
    return Proposal(
        f"{found.name} is joined once, behind the loop ({path.name}:{first})",
        speedup_without(share, JOINING_ONCE_SAVES),
        f"joining piece by piece takes {percent(share)} of the step",
        sources=context.sources.with_module(path, once(module, found)),
        key=context.key(path, found.name, first),
        lines=Lines.of(path, module, call),
    )


REMEDY = JoinOnce()
