"""The parts of a tensor that a loop takes one by one are taken before it: one gradient instead of one for each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import readable
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.parts_at_once import SlicedTensor, sliced_once, sliced_tensors
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import LEAST_SHARE, PARTS_AT_ONCE_SAVE
from unstall.records.vocabulary import BACKWARD
from unstall.text.units import percent

_NODES = ("SliceBackward", "SelectBackward", "AsStridedBackward")


class PartsAtOnce(Remedy):
    """The lines whose gradient is that of slices, where the tensor is a local variable of the loop's function."""

    name = "parts-at-once"
    brief = "the parts of a tensor that a loop takes one by one (`x[:, t]`) are taken before it, by `unbind` or `split`"
    needs = "a loop over the parts of a local variable that nothing changes in place, and backward through it"
    patterns = ("compute-bound", "overhead-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        of_line = _slices(context)
        return proposals_by_file(
            _found(context, of_line),
            partial(_proposal, context),
            "no line of your own takes parts of a tensor whose gradients take time",
        )


def _slices(context: RemedyContext) -> dict[tuple[Path, int], float]:
    """By file and line: share of the step that the gradients of slices take, where they are the costliest of a line."""
    shares: dict[tuple[Path, int], float] = {}
    for line, share in context.measurement.backward_shares:
        path = context.user_file(line.frames[-1].file)
        if path is not None and line.node.startswith(_NODES):
            place = path, line.frames[-1].line
            shares[place] = shares.get(place, 0.0) + context.share(BACKWARD.name) * share
    return shares


def _found(
    context: RemedyContext, of_line: dict[tuple[Path, int], float]
) -> Iterator[tuple[Path, SlicedTensor, float]]:
    """Each variable once, with the share of its costliest line."""
    seen, modules = set(), dict(readable(context, (path for path, _ in of_line)))
    for (path, line), share in sorted(of_line.items(), key=lambda item: -item[1]):
        for whole in sliced_tensors(modules[path], line) if path in modules else ():
            if (path, whole.loop, whole.name) not in seen:
                seen.add((path, whole.loop, whole.name))
                yield path, whole, share


def _proposal(context: RemedyContext, path: Path, whole: SlicedTensor, share: float) -> Proposal:
    module = context.sources.module(path)
    if share < LEAST_SHARE:
        raise NotApplicable(f"the gradients of the parts of {whole.name} take {percent(share)} of the step")
    return Proposal(
        f"the parts of {whole.name} at once ({path.name}:{module.first_line(whole.loop)})",
        speedup_without(share, PARTS_AT_ONCE_SAVE),
        f"the gradients of its slices take {percent(share)} of the step",
        sources=context.sources.with_module(path, sliced_once(module, whole)),
        key=context.key(path, module.full_name(whole.function), whole.name),
        lines=Lines.of(path, module, whole.loop),
    )


REMEDY = PartsAtOnce()
