"""Activation checkpointing turned off, where memory holds all activations: backward computes none of them again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from unstall.diagnose.patterns.recompute_bound import CHECKPOINTING
from unstall.optimize.context import RemedyContext
from unstall.optimize.everywhere import changed_everywhere
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import Edit, is_true, keyword, put, with_keyword, without_keyword
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.optimize.source.module import SourceModule, method_name
from unstall.optimize.thresholds import ACTIVATIONS_TAKE
from unstall.text.units import bytes_, percent

_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_OPTIONS = ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop")
"""Of `checkpoint`: all other arguments are those of the function that it calls."""
_SELECTING = "context_fn"
"""Of `checkpoint`: says which operators are computed again."""
_ENABLE = "gradient_checkpointing_enable"
"""Transformers' method of a model."""
_OPTION = "gradient_checkpointing"
"""Transformers' argument of a training."""


class KeepActivations(Remedy):
    """All places at once: some layers alone keep what others would need as well."""

    name = "keep-activations"
    brief = "activations that were computed again in backward, to save memory, are kept"
    needs = (
        "calls of torch.utils.checkpoint, or Transformers' switch for it, in your own code; a program on a processor "
        "that takes a small part of its memory"
    )
    patterns = ("recompute-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        finding = context.finding_of(CHECKPOINTING)
        if finding is None:
            raise NotApplicable("backward computes no activations again")
        _refuse_without_room(context)
        nowhere = "what is computed again is not checkpointed in the program's own code"
        sources, places = changed_everywhere(context, _edits, nowhere)
        share = finding.share or 0.0
        return [
            Proposal(
                f"activations are kept ({places})",
                speedup_without(share),
                f"computing them again takes {percent(share)} of the step",
                sources=sources,
                key="all",
            )
        ]


def _refuse_without_room(context: RemedyContext) -> None:
    """Raise NotApplicable where the activations may not fit: a few steps of a trial do not show that they always do."""
    if context.on_gpu:
        raise NotApplicable("whether a GPU has the memory for all activations of all batches is for you to say")
    memory = context.measurement.memory
    if not memory.has_room_for(ACTIVATIONS_TAKE):
        taken, there = bytes_(memory.rss_peak or 0), bytes_(memory.available)
        raise NotApplicable(f"the run takes {taken} of {there} already: all activations may not fit")


def _edits(module: SourceModule) -> Iterator[tuple[cst.CSTNode, Edit]]:
    """What checkpoints in a file, and what becomes of it. Raises AnalysisRefused."""
    for call in module.all(cst.Call):
        above = module.parent(call)
        if module.name(call) == _CHECKPOINT:
            _refuse_selecting(module, call)
            yield call, _called_directly
        elif method_name(call) == _ENABLE and isinstance(above, cst.Expr):
            yield above, put(cst.Pass())
        elif is_true(keyword(call, _OPTION)):
            yield call, lambda node: with_keyword(node, _OPTION, "False")


def _refuse_selecting(module: SourceModule, call: cst.Call) -> None:
    first = call.args[0] if call.args else None
    if first is None or first.keyword is not None or first.star or keyword(call, _SELECTING) is not None:
        raise AnalysisRefused(f"line {module.first_line(call)} does not say plainly what is computed again")


def _called_directly(call: cst.Call) -> cst.Call:
    """``function(x)`` of ``checkpoint(function, x, use_reentrant=False)``."""
    for option in _OPTIONS:
        call = without_keyword(call, option)
    first, *others = call.args
    function = first.value
    if isinstance(function, cst.Lambda) and not function.lpar:
        function = function.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return call.with_changes(func=function, args=others)


REMEDY = KeepActivations()
