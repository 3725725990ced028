"""Rows of a pandas frame of which only an array is made are taken of the frame's array."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_functions_within, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.frame_values import by_values, rows_as_arrays
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import FRAME_ROWS_SAVES, LEAST_SHARE
from unstall.text.units import percent


class FrameValues(Remedy):
    """The functions that the stack samples fell in, where what they wait for is pandas."""

    name = "frame-values"
    brief = "`frame.iloc[i]`, where only an array is made of it, becomes `frame.values[i]`"
    needs = (
        "rows of a frame in your own code that go into `np.array`, `np.stack` and the like, or are asked for `.values`"
    )
    patterns = ("input-bound", "host-bound", "environment-bound", "callback-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            hot_functions_within(context, "pandas"),
            partial(_proposal, context),
            "no hot function of the program's own makes arrays of rows of pandas",
        )


def _proposal(context: RemedyContext, path: Path, function: cst.FunctionDef, of_line: Mapping[int, float]) -> Proposal:
    module, name = context.sources.module(path), function.name.value
    rows = list(rows_as_arrays(module, function))
    share = share_on(of_line, {module.first_line(row.node) for row in rows})
    if share < LEAST_SHARE:
        raise NotApplicable(f"{name} makes no arrays of rows")
    return Proposal(
        f"{name} takes rows of the frame's array ({path.name}:{module.first_line(rows[0].node)})",
        speedup_without(share, FRAME_ROWS_SAVES),
        f"rows of pandas take {percent(share)} of the step",
        sources=context.sources.with_module(path, by_values(module, rows)),
        key=context.key(path, module.full_name(function)),
        lines=Lines.of(path, module, *(row.node for row in rows)),
    )


REMEDY = FrameValues()
