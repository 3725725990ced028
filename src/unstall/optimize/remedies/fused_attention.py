"""Attention written out by hand, given to ``torch.nn.functional.scaled_dot_product_attention``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.attention import Attention, find
from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_lines, readable
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.source.edit import Edit, edited, put
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_import
from unstall.optimize.thresholds import FUSED_ATTENTION_SAVES, FUSED_SPREAD_ATTENTION_SAVES, LEAST_SHARE_OF_ALL
from unstall.text.units import percent


class FusedAttention(Remedy):
    """Each place where the formula stands in the program's own code."""

    name = "fused-attention"
    brief = "attention written by hand becomes `scaled_dot_product_attention`"
    needs = "the formula in your own code"
    patterns = ("compute-bound", "overhead-bound")
    exactness = "close"
    """The fused operator adds in another order, and never makes the matrix of scores."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            _candidates(context),
            partial(_proposal, context),
            "no attention written by hand was found in the program's own code",
        )


def _candidates(context: RemedyContext) -> Iterator[tuple[Path, SourceModule, Attention]]:
    for path, module in readable(context, _files(context)):
        yield from ((path, module, attention) for attention in find(module))


def _proposal(context: RemedyContext, path: Path, module: SourceModule, attention: Attention) -> Proposal:
    share = share_of(context, path, module, attention)
    if share < LEAST_SHARE_OF_ALL:
        raise NotApplicable(f"the attention in {attention.name} takes {percent(share)} of the step")
    line = module.first_line(attention.result)
    return Proposal(
        f"scaled_dot_product_attention in {attention.name} ({path.name}:{line})",
        speedup_without(share, FUSED_SPREAD_ATTENTION_SAVES if attention.spread else FUSED_ATTENTION_SAVES),
        f"the operators of {attention.name} take {percent(share)} of the step",
        sources=context.sources.with_module(path, with_fused(module, attention)),
        key=context.key(path, attention.name, line),
    )


def _files(context: RemedyContext) -> list[Path]:
    """The program's files in which modules or samples were seen."""
    names = [module.file for module in context.measurement.modules]
    names += [spot.file for spot in context.report.hotspots]
    paths = [context.user_file(name) for name in dict.fromkeys(names)]
    return [path for path in paths if path is not None]


def share_of(context: RemedyContext, path: Path, module: SourceModule, attention: Attention) -> float:
    """Share of the step: of the modules of the class, without those inside them; or, outside of one, of its lines."""
    modules = context.measurement.modules
    total = sum(observed.self_s for observed in modules)
    own = sum(
        observed.self_s
        for observed in modules
        if observed.type == attention.cls and context.user_file(observed.file) == path
    )
    both = context.share("forward", "backward")
    if own and total:
        return own / total * both
    forward = context.share("forward")
    lines = sum(
        share for file, line, share in hot_lines(context) if file == path and module.is_on(attention.function, line)
    )
    return lines * (both / forward if forward else 1.0)


def with_fused(module: SourceModule, attention: Attention) -> cst.Module:
    """The tree with the statement that makes the result changed, and those that only led to it left out."""
    edits: dict[cst.CSTNode, Edit] = {node: put() for node in attention.unneeded}
    tree = edited(module.tree, {**edits, attention.result: put(attention.replacement)})
    return tree if module.alias("torch.nn.functional") else with_import(tree, "torch")


REMEDY = FusedAttention()
