"""`torch.tensor` of a list reads the list by way of NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import Part, hot_parts, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy, proposals_of
from unstall.optimize.source.listed import by_arrays, listed_tensors
from unstall.optimize.thresholds import LEAST_SHARE, READING_LISTS_SAVES
from unstall.text.units import percent

_NONE = "no hot line of your own makes a tensor of a list"


class ListedTensors(Remedy):
    """The functions, or the file's top level, whose lines that make tensors the stack samples fell in."""

    name = "listed-tensors"
    brief = "`torch.tensor(rows)`, where `rows` is a nested list or a list of arrays, reads it by way of NumPy"
    needs = "`torch.tensor`, `torch.FloatTensor` or one like them on a hot line of your own"
    patterns = ("input-bound", "host-bound", "callback-bound", "environment-bound", "overhead-bound", "transfer-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_of(
            hot_parts(context).items(),
            lambda candidate: _proposal(context, *candidate[0], candidate[1]),
            _NONE,
        )


def _proposal(context: RemedyContext, path: Path, part: Part, of_line: Mapping[int, float]) -> Proposal:
    module = context.sources.module(path)
    name = part.name.value if isinstance(part, cst.FunctionDef) else path.stem
    calls = list(listed_tensors(module, part))
    lines = module.lines(*calls)
    share = share_on(of_line, lines)
    if share < LEAST_SHARE:
        raise NotApplicable(_NONE)
    return Proposal(
        f"reads lists by way of NumPy ({path.name}:{min(lines)})",
        speedup_without(share, READING_LISTS_SAVES),
        f"the lines of {name} that make tensors take {percent(share)} of the step",
        sources=context.sources.with_module(path, by_arrays(module, calls)),
        key=f"{path.name}:{name}",
        lines=Lines.of(path, module, *calls),
    )


REMEDY = ListedTensors()
