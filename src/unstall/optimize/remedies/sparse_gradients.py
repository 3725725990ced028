"""Gradients of embeddings that hold the rows that were used, and no others: their optimizer updates these alone."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.everywhere import changed_everywhere
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import Edit, keyword, with_keyword
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.module import SourceModule
from unstall.optimize.thresholds import LEAST_SHARE, SPARSE_GRADIENTS_SAVE
from unstall.records.vocabulary import OPTIMIZER
from unstall.text.units import percent

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
_SAME = {"SGD", "Adagrad"}
"""Optimizers of torch's that leave a row as it is whose gradient is zero, and take sparse gradients."""
_NODE = "Embedding"
"""How autograd's names of their gradients begin."""


class SparseGradients(Remedy):
    """For all tables at once: a step may look up several."""

    name = "sparse-gradients"
    brief = "embeddings with `sparse=True`: an update of the rows that a batch uses, not of the whole table"
    needs = "`nn.Embedding` in your own code, and SGD or Adagrad as the only optimizers, which are not fused"
    patterns = ("compute-bound",)
    exactness = "close"
    """The gradients of a row are added up in another order."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        dense = _share_of_gradients(context)
        if dense < LEAST_SHARE:
            raise NotApplicable("no gradient of an embedding takes a noticeable part of the step")
        _refuse_other_optimizers(context)
        sources, places = changed_everywhere(context, _edits, "the program's own code makes no embedding")
        share = min(1.0, dense + context.share(OPTIMIZER.name))
        return [
            Proposal(
                f"embeddings with sparse=True ({places})",
                speedup_without(share, SPARSE_GRADIENTS_SAVE),
                f"the gradients of whole tables, and the updates by them, take {percent(share)} of the step",
                sources=sources,
                key="all",
            )
        ]


def _share_of_gradients(context: RemedyContext) -> float:
    """Share of the step in which backward makes the gradients of embeddings."""
    seconds = sum(
        line.backward_s * line.per_step for line in context.measurement.operators if line.node.startswith(_NODE)
    )
    return seconds / context.measurement.step.mean


def _refuse_other_optimizers(context: RemedyContext) -> None:
    """Raise NotApplicable where an optimizer would do otherwise by sparse gradients, or takes none."""
    optimizers = context.runtime.optimizers
    others = {optimizer.type for optimizer in optimizers} - _SAME
    if others or not optimizers:
        name = min(others, default="no optimizer of torch's")
        raise NotApplicable(f"{name} moves rows that a batch does not use, too: without them it is another training")
    if any(optimizer.fused for optimizer in optimizers):
        raise NotApplicable("a fused optimizer takes no sparse gradients")


def _edits(module: SourceModule) -> Iterator[tuple[cst.CSTNode, Edit]]:
    """What makes the tables of a file."""
    for call in module.all(cst.Call):
        if module.name(call) in _TABLES and keyword(call, "sparse") is None:
            yield call, lambda node: with_keyword(node, "sparse", "True")


REMEDY = SparseGradients()
