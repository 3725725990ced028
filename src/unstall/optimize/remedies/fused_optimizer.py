"""The optimizer's update in one kernel (``fused=True``) or over lists of tensors (``foreach=True``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.observed import ObservedOptimizer
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, in_source
from unstall.optimize.source.edit import Edit, edited, put, with_keyword
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.thresholds import FUSED_OPTIMIZER_SAVES, LEAST_OPTIMIZER
from unstall.text.units import percent

_HAVE = {
    "fused": {"Adam", "AdamW", "SGD", "Adagrad"},
    "foreach": {"Adam", "AdamW", "SGD", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adadelta", "Adamax", "ASGD", "Rprop"},
}
"""Optimizers of torch's that take each option."""


class FusedOptimizer(Remedy):
    """For the optimizers of torch's that have such a form and do not use it, all at once."""

    name = "fused-optimizer"
    brief = "`fused=True` or `foreach=True`"
    needs = "an optimizer of `torch.optim`"
    patterns = ("compute-bound", "overhead-bound")
    exactness = "close"
    """The same formula in another order of operations."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        share = context.share("optimizer")
        if share < LEAST_OPTIMIZER:
            raise NotApplicable(f"the optimizer takes {percent(share)} of the step")
        proposals = [_proposal(context, option, share) for option in _HAVE if _takers(context, option)]
        if not proposals:
            raise NotApplicable("the optimizer has no fused form, or uses it")
        return proposals


def _takers(context: RemedyContext, option: str) -> list[ObservedOptimizer]:
    """The optimizers that take an option which would change what they do: ``fused`` outdoes ``foreach``."""
    return [
        optimizer for optimizer in context.runtime.optimizers
        if optimizer.module.startswith("torch.optim") and optimizer.type in _HAVE[option]
        and not optimizer.fused and not optimizer.foreach
    ]  # fmt: skip


def _proposal(context: RemedyContext, option: str, share: float) -> Proposal:
    """The option for all optimizers that take it: the share is that of all, and at run time it is set for all."""
    takers = _takers(context, option)
    sources, place = in_source(lambda: _written(context, option, takers), "at run time")
    types = " and ".join(dict.fromkeys(optimizer.type for optimizer in takers))
    return Proposal(
        f"{types}({option}=True) {place}",
        speedup_without(share, FUSED_OPTIMIZER_SAVES[option]),
        f"the optimizer takes {percent(share)} of the step",
        sources=sources,
        settings={"optimizer": {option: True}},
        key=option,
    )


def _written(context: RemedyContext, option: str, takers: Sequence[ObservedOptimizer]) -> tuple[Sources, str]:
    """The sources with the option in each call, and the places. Raises NotApplicable where one is not the user's."""
    others = {optimizer.call for optimizer in context.runtime.optimizers if optimizer not in takers}
    edits: defaultdict[Path, dict[cst.CSTNode, Edit]] = defaultdict(dict)
    places = []
    for call in dict.fromkeys(optimizer.call for optimizer in takers):
        if call in others:
            raise NotApplicable("the call makes an optimizer of another type, too")
        path, module, node = context.locate(call)
        edits[path][node] = put(with_keyword(node, option, "True"))
        places.append(f"{path.name}:{module.first_line(node)}")
    sources = context.sources
    for path, of_file in edits.items():
        sources = sources.with_module(path, edited(sources.module(path).tree, of_file))
    return sources, f"({', '.join(places)})"


REMEDY = FusedOptimizer()
