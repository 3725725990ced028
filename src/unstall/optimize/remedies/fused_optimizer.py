"""The optimizer's update in one kernel (``fused=True``) or over lists of tensors (``foreach=True``)."""

from __future__ import annotations

from contextlib import suppress

from unstall.optimize.context import RemedyContext
from unstall.optimize.observed import ObservedOptimizer
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import replaced, with_keyword
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import FUSED_OPTIMIZER_SAVES, LEAST_OPTIMIZER
from unstall.text.units import percent

_HAVE = {
    "fused": {"Adam", "AdamW", "SGD", "Adagrad"},
    "foreach": {"Adam", "AdamW", "SGD", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adadelta", "Adamax", "ASGD", "Rprop"},
}
"""Optimizers of torch's that take each option."""


class FusedOptimizer(Remedy):
    """For each optimizer of torch's that has such a form and does not use it."""

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
        proposals = [
            _proposal(context, optimizer, option, share)
            for optimizer in context.runtime.optimizers
            for option in _options(optimizer)
        ]
        if not proposals:
            raise NotApplicable("the optimizer has no fused form, or uses it")
        return proposals


def _options(optimizer: ObservedOptimizer) -> list[str]:
    """The options that an optimizer takes and that would change what it does: ``fused`` outdoes ``foreach``."""
    if not optimizer.module.startswith("torch.optim") or optimizer.fused:
        return []
    return [
        option for option, types in _HAVE.items()
        if optimizer.type in types and not (option == "foreach" and optimizer.foreach)
    ]  # fmt: skip


def _proposal(context: RemedyContext, optimizer: ObservedOptimizer, option: str, share: float) -> Proposal:
    sources, place = None, " at run time"
    with suppress(NotApplicable):
        path, module, call = context.locate(optimizer.call)
        tree = replaced(module.tree, call, with_keyword(call, option, "True"))
        sources, place = context.sources.with_module(path, tree), f" ({path.name}:{module.first_line(call)})"
    return Proposal(
        f"{optimizer.type}({option}=True){place}",
        speedup_without(share, FUSED_OPTIMIZER_SAVES[option]),
        f"the optimizer takes {percent(share)} of the step",
        sources=sources,
        settings={"optimizer": {option: True}},
        key=optimizer.type + option,
    )


REMEDY = FusedOptimizer()
