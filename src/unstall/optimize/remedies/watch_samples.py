"""Samples that turn out the same whenever they are made, kept in memory from one epoch to the next.

Where the source does not show that a sample is the same in every epoch (it is made by objects whose classes are known
only when the program runs), running it does: while results are compared, each is made twice under different seeds. What
the patch keeps it gives up as soon as the dataset, or anything that it holds, is set otherwise, and it keeps no sample
whose making draws random numbers.
"""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import share_of_sample_lines
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.remedies.cache_samples import find_head, only_indexes
from unstall.optimize.source.edit import edited, put, statement
from unstall.optimize.source.effects import may_differ
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable, located
from unstall.optimize.source.module import SourceModule, method_name
from unstall.optimize.source.samples import MAKE, unkept_sample_method
from unstall.optimize.source.toplevel import with_runtime
from unstall.optimize.thresholds import LEAST_SHARE, WATCHED_SAMPLE_SAVES
from unstall.text.units import percent

_CONDITIONAL = (cst.If, cst.IfExp, cst.Try, cst.Lambda)


class WatchSamples(Remedy):
    """Keep whole samples of the main loader's dataset, and watch over what it holds."""

    name = "watch-samples"
    brief = (
        "samples that are the same whenever they are made are kept in memory, up to a gigabyte, until the dataset or "
        "anything that it holds is set otherwise; none is kept whose making draws random numbers"
    )
    needs = "a map-style dataset in your code, read by the main process, with work that its source does not show steady"
    patterns = ("input-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        loader, path = context.own_dataset()
        context.refuse_one_pass()
        if loader.num_workers:
            raise NotApplicable("samples are made in worker processes, which end with what they keep")
        module = context.sources.module(path)
        with located(path.name):
            cls, method = _method(module, loader.getitem_line or 0)
        if only_indexes(module, loader):
            raise NotApplicable(f"{loader.dataset}.__getitem__ only indexes what is in memory")
        if _is_shown_steady(module, loader.getitem_line or 0):
            raise NotApplicable(f"what {cls.name.value}.__getitem__ makes is steady: see cache-samples")
        return [_proposal(context, path, module, cls, method)]


def _proposal(
    context: RemedyContext, path: Path, module: SourceModule, cls: cst.ClassDef, method: cst.FunctionDef
) -> Proposal:
    lines = Lines.of(path, module, method)
    share = share_of_sample_lines(context, path, lines.first, lines.last, in_workers=False)
    if share < LEAST_SHARE:
        raise NotApplicable(f"{cls.name.value}.__getitem__ takes only {percent(share)} of the step")
    return Proposal(
        f"the samples of {cls.name.value} ({path.name}:{lines.first}) kept while nothing that it holds is set anew",
        speedup_without(share, WATCHED_SAMPLE_SAVES),
        f"making them takes {percent(share)} of the step; they are assumed to be the same in every epoch",
        sources=context.sources.with_module(path, with_watch(module, method)),
        needs_revisits=True,
        key=context.key(path, cls.name.value),
        lines=lines,
    )


def _method(module: SourceModule, line: int) -> tuple[cst.ClassDef, cst.FunctionDef]:
    """(class, the ``__getitem__`` that begins on a line), where what it gives may be kept. Raises AnalysisRefused."""
    cls, method = unkept_sample_method(module, line)
    name = f"{cls.name.value}.__getitem__"
    for call in (node for node in module.inside(method) if isinstance(node, cst.Call)):
        last = method_name(call)
        if may_differ(module.name(call) or f".{last}") and not _is_conditional(module, call, method):
            raise AnalysisRefused(f"{name} calls {module.name(call) or last}, which may differ every time")
    return cls, method


def _is_conditional(module: SourceModule, node: cst.CSTNode, method: cst.FunctionDef) -> bool:
    """Whether a part of a method may never be reached: whether it is, a run shows."""
    for outer in module.ancestors(node):
        if outer is method:
            return False
        if isinstance(outer, _CONDITIONAL):
            return True
    return False


def _is_shown_steady(module: SourceModule, line: int) -> bool:
    """Whether the source shows that the whole method gives the same in every epoch."""
    try:
        return find_head(module, line).is_whole_method
    except AnalysisRefused:
        return False


def with_watch(module: SourceModule, method: cst.FunctionDef) -> cst.Module:
    """The tree with what ``__getitem__`` makes kept by the class that a patch brings along. Raises NameTaken."""
    tree = module.tree
    index = method.params.params[1].name.value
    make = method.with_changes(name=cst.Name(MAKE))
    get = statement(tree, f"return _WatchedSamples.get(self, self.{MAKE}, {index})")
    header = method.body.header if isinstance(method.body, cst.IndentedBlock) else cst.TrailingWhitespace()
    front = method.with_changes(
        body=cst.IndentedBlock([get], header=header), leading_lines=[cst.EmptyLine(indent=False)]
    )
    return with_runtime(edited(tree, {method: put(make, front)}), "watched_samples")


REMEDY = WatchSamples()
