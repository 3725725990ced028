"""A filter of each channel that is a column times a row, such as a Gaussian, goes along one axis after the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import Part, hot_parts, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy, proposals_of
from unstall.optimize.source.filters import by_axes, channel_filters
from unstall.optimize.thresholds import LEAST_SHARE, SEPARATING_SAVES
from unstall.text.units import percent

_NONE = "no hot line of your own filters channels by themselves"


class SeparableFilter(Remedy):
    """The functions, or the file's top level, whose convolutions the stack samples fell in."""

    name = "separable-filter"
    brief = "`conv2d` with a filter for each channel goes along one axis after the other, if the filter is a product"
    needs = "`conv2d(..., groups=...)` on a hot line of your own, on a CPU: blurs, the windows of an SSIM loss"
    patterns = ("compute-bound", "overhead-bound", "input-bound", "host-bound", "callback-bound")
    exactness = "close"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_of(
            hot_parts(context).items(),
            lambda candidate: _proposal(context, *candidate[0], candidate[1]),
            _NONE,
        )


def _proposal(context: RemedyContext, path: Path, part: Part, of_line: Mapping[int, float]) -> Proposal:
    module = context.sources.module(path)
    name = part.name.value if isinstance(part, cst.FunctionDef) else path.stem
    calls = list(channel_filters(module, part))
    lines = module.lines(*calls)
    share = share_on(of_line, lines)
    if share < LEAST_SHARE:
        raise NotApplicable(_NONE)
    return Proposal(
        f"{name} filters along one axis after the other ({path.name}:{min(lines)})",
        speedup_without(share, SEPARATING_SAVES),
        f"its convolutions take {percent(share)} of the step; their filters are assumed to be products",
        sources=context.sources.with_module(path, by_axes(module, calls)),
        key=f"{path.name}:{name}",
        lines=Lines.of(path, module, *calls),
    )


REMEDY = SeparableFilter()
