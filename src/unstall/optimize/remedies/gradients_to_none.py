"""``zero_grad(set_to_none=False)`` fills every gradient with zeros; torch's default drops them."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.child.seams import autograd, optimizer
from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_lines
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy, proposals_of
from unstall.optimize.source.edit import edited, keyword, without_keyword
from unstall.optimize.source.module import SourceModule
from unstall.text.units import percent

_REMOVED = 0.9  # of the line's time
_NOWHERE = "the program does not fill its gradients with zeros"


class GradientsToNone(Remedy):
    """Where the program asks for zeros, in the files that make an optimizer or go backward."""

    name = "gradients-to-none"
    brief = "`zero_grad(set_to_none=False)` drops the gradients instead"
    patterns = ("compute-bound", "overhead-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        sites = (
            site.file
            for site in context.measurement.sites
            if site.seam in (autograd.BACKWARD.event, optimizer.STEP.event)
        )
        files = [context.user_file(file) for file in sites]
        files += [context.file_of(optimizer.call) for optimizer in context.runtime.optimizers]
        return proposals_of(
            dict.fromkeys(file for file in files if file is not None),
            lambda path: _proposal(context, path),
            _NOWHERE,
        )


def _proposal(context: RemedyContext, path: Path) -> Proposal:
    module = context.sources.module(path)
    tree, lines = with_none(module)
    share = sum(share for file, line, share in hot_lines(context) if file == path and line in lines)
    return Proposal(
        f"zero_grad() drops the gradients ({path.name}:{lines[0]})",
        speedup_without(share, _REMOVED),
        f"filling gradients with zeros takes {percent(share)} of the step",
        sources=context.sources.with_module(path, tree),
        key=path.name,
    )


def with_none(module: SourceModule) -> tuple[cst.Module, list[int]]:
    """The tree without ``set_to_none=False``, and the lines where it stood. Raises NotApplicable without one."""
    calls = [call for call in module.all(cst.Call) if _asks_for_zeros(call)]
    if not calls:
        raise NotApplicable(_NOWHERE)
    changed = edited(module.tree, {call: lambda now: without_keyword(now, "set_to_none") for call in calls})
    return changed, [module.first_line(call) for call in calls]


def _asks_for_zeros(call: cst.Call) -> bool:
    given = keyword(call, "set_to_none")
    is_false = given is not None and isinstance(given.value, cst.Name) and given.value.value == "False"
    return is_false and isinstance(call.func, cst.Attribute) and call.func.attr.value == "zero_grad"


REMEDY = GradientsToNone()
