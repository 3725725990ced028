"""The layers before a loss that ignores rows without a label are given the others alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import readable
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.labelled_rows import LabelledLoss, labelled_losses, selected
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import LEAST_SHARE
from unstall.records.vocabulary import BACKWARD, FORWARD
from unstall.text.units import percent


class LabelledRows(Remedy):
    """The calls on the way to the line on most of whose rows no loss depends."""

    name = "labelled-rows"
    brief = "the layers before a `cross_entropy` that ignores rows without a label are given the others alone"
    needs = "what the layers give is flattened for the loss, used for nothing else, and most rows have no label"
    patterns = ("compute-bound",)
    exactness = "close"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        found = context.measurement.zero_products
        if found is None or not found.of_gradients:
            raise NotApplicable("a loss depends on every row that is computed")
        share = found.forward * context.share(FORWARD.name) + found.backward * context.share(BACKWARD.name)
        if share < LEAST_SHARE:
            raise NotApplicable(f"rows on which no loss depends take {percent(share)} of the step")
        return proposals_by_file(
            _found(context),
            partial(_proposal, context, share=share),
            "no `cross_entropy` of your own is of what layers give for these rows",
        )


def _found(context: RemedyContext) -> Iterator[tuple[Path, LabelledLoss]]:
    """The innermost first."""
    products = context.measurement.zero_products
    for frame in reversed(products.frames if products is not None else ()):
        own = context.user_file(frame.file)
        for path, module in readable(context, [own] if own is not None else []):
            yield from ((path, loss) for loss in labelled_losses(module, frame.line))


def _proposal(context: RemedyContext, path: Path, found: LabelledLoss, share: float) -> Proposal:
    module = context.sources.module(path)
    name, first = module.code(found.layers.func), module.first_line(found.layers)
    return Proposal(
        f"{name} is given the rows that have a label ({path.name}:{first})",
        speedup_without(share),
        f"rows on which no loss depends take {percent(share)} of the step",
        sources=context.sources.with_module(path, selected(module, found)),
        key=context.key(path, first),
        lines=Lines.of(path, module, found.layers),
    )


REMEDY = LabelledRows()
