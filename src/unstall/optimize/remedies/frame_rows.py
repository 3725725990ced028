"""A loop that takes rows of a pandas frame one by one takes their items from the columns, which it looks up once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_functions_within, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.frame_rows import by_columns, row_accesses
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import FRAME_ROWS_SAVES, LEAST_SHARE
from unstall.text.units import percent


class FrameRows(Remedy):
    """The loops that the stack samples fell in, where what they wait for is pandas."""

    name = "frame-rows"
    brief = "a loop over rows of a pandas frame (iloc, iterrows, slices) takes them from its columns, looked up once"
    needs = "a loop in your own code that only asks for items of the rows, and leaves the frame as it is"
    patterns = ("input-bound", "host-bound", "environment-bound", "callback-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            hot_functions_within(context, "pandas"),
            partial(_proposal, context),
            "no loop of the program's own waits for rows of pandas",
        )


def _proposal(context: RemedyContext, path: Path, function: cst.FunctionDef, of_line: dict[int, float]) -> Proposal:
    module, name = context.sources.module(path), function.name.value
    accesses = list(row_accesses(module, function))
    names = {access.name for access in accesses} - {""}
    nodes = [
        *(access.node for access in accesses),
        *(node for node in module.inside(function) if isinstance(node, cst.Name) and node.value in names),
    ]
    share = share_on(of_line, {module.first_line(node) for node in nodes})
    if share < LEAST_SHARE:
        raise NotApplicable(f"{name} takes no rows in a loop that could be taken from columns")
    return Proposal(
        f"{name} takes rows from columns ({path.name}:{module.first_line(accesses[0].node)})",
        speedup_without(share, FRAME_ROWS_SAVES),
        f"rows of pandas take {percent(share)} of the step",
        sources=context.sources.with_module(path, by_columns(module, function, accesses)),
        key=context.key(path, module.full_name(function)),
        lines=Lines.of(path, module, function),
    )


REMEDY = FrameRows()
