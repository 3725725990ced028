"""What is joined to anew each time grows in spare room: a step does not take longer the more went before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_modules, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.growable_buffer import Join, in_spare_room, joins, refuse_changes_in_place
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import LEAST_GROWING, SPARE_ROOM_SAVES
from unstall.text.units import percent


class GrowableBuffer(Remedy):
    """The joins that the stack samples fell in, and others in the same functions: they grow together."""

    name = "growable-buffer"
    brief = "a tensor or array that is joined to again and again (torch.cat, np.append) grows in spare room behind it"
    needs = "`x = torch.cat([x, new])` or NumPy's like in your own code, where nothing changes `x` in place"
    patterns = ("slows-down", "host-bound", "callback-bound", "memory-growth", "overhead-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            _candidates(context),
            partial(_proposal, context),
            "no line of the program's own that takes time joins an array or a tensor to itself",
        )


def _candidates(
    context: RemedyContext,
) -> Iterator[tuple[Path, cst.FunctionDef | None, list[Join], Mapping[int, float]]]:
    """(file, function, its joins, share of the step by line) of the files that hot lines are in."""
    for path, module, of_line in hot_modules(context):
        by_function: dict[cst.FunctionDef | None, list[Join]] = defaultdict(list)
        for join in joins(module):
            by_function[join.function].append(join)
        for function, found_joins in by_function.items():
            yield path, function, found_joins, of_line


def _proposal(
    context: RemedyContext,
    path: Path,
    function: cst.FunctionDef | None,
    found_joins: list[Join],
    of_line: Mapping[int, float],
) -> Proposal:
    module, name = context.sources.module(path), function.name.value if function else path.stem
    lines = module.lines(*(join.call for join in found_joins))
    share = share_on(of_line, lines)
    if share < LEAST_GROWING:
        raise NotApplicable(f"{name} joins nothing to itself that takes time")
    for join in found_joins:
        refuse_changes_in_place(module, join)
    return Proposal(
        f"{name} joins in spare room ({path.name}:{min(lines)})",
        speedup_without(share, SPARE_ROOM_SAVES),
        f"joining takes {percent(share)} of the step, and more with every step",
        sources=context.sources.with_module(path, in_spare_room(module, found_joins)),
        key=context.key(path, module.full_name(function or module.tree)),
        lines=Lines.of(path, module, found_joins[0].call, found_joins[-1].call),
    )


REMEDY = GrowableBuffer()
