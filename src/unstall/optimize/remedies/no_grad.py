"""Evaluation and inference that record gradients nobody asks for: ``torch.no_grad()`` around them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import libcst as cst

from unstall.child.seams import autograd, modules
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, first_of, proposals_of
from unstall.optimize.source.edit import replaced
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable, located
from unstall.optimize.source.module import SourceModule, walk
from unstall.optimize.source.toplevel import with_import, with_statement_after_imports
from unstall.optimize.thresholds import NO_GRADIENTS_SAVES
from unstall.records.measurements import SeamSite
from unstall.records.model import DroppedGradients
from unstall.records.vocabulary import BACKWARD
from unstall.text.units import percent

_ASKING = {"backward", "grad", "autograd", "optim", "enable_grad", "requires_grad_"}
"""Names of a script that may ask for a gradient."""
_ASKING_ATTRIBUTES = ("backward", "requires_grad_", "grad")


class NoGrad(Remedy):
    """Functions that call the model with gradients on, and from which nothing goes backward."""

    name = "no-grad"
    brief = (
        "evaluation loops, programs that train nothing, and calls of a model that does not learn record no gradients"
    )
    needs = "calls of a model that record gradients, with no backward after them, or none that anything uses"
    patterns = ("compute-bound", "overhead-bound", "callback-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        around = _outside_training if context.trains else _without_training
        proposals: list[Callable[[], Proposal]] = [
            partial(around, context, site)
            for site in context.measurement.sites
            if site.seam == modules.FORWARD.event and site.grad
        ]
        dropped = context.measurement.model.dropped
        if dropped is not None and dropped.frames:
            proposals.insert(0, partial(_call_without_gradients, context, dropped))
        return proposals_of(
            proposals,
            lambda propose: propose(),
            "no loop calls the model with gradients on and never goes backward",
        )


def _call_without_gradients(context: RemedyContext, dropped: DroppedGradients) -> Proposal:
    """The statement on the way to a model from which backward computes what nothing uses."""
    frame = dropped.frames[-1]
    path = context.user_file(frame.file)
    if path is None:
        raise NotApplicable(f"{dropped.model} is called in a library")
    module = context.sources.module(path)
    share = context.share(BACKWARD.name) * dropped.share
    with located(path.name):
        tree = with_statement_without_gradients(module, frame.line)
    return Proposal(
        f"no gradients of {dropped.model} ({path.name}:{frame.line})",
        speedup_without(share),
        f"computing them takes {percent(share)} of the step, and nothing uses them",
        sources=context.sources.with_module(path, tree),
        key=context.key(path, frame.line),
    )


def with_statement_without_gradients(module: SourceModule, line: int) -> cst.Module:
    """The tree with an assignment under ``torch.no_grad()``. Raises AnalysisRefused where the line is none."""
    simple = [node for node in module.all(cst.SimpleStatementLine) if module.is_on(node, line)]
    if len(simple) != 1 or len(simple[0].body) != 1 or not isinstance(simple[0].body[0], (cst.Assign, cst.AnnAssign)):
        raise AnalysisRefused(f"line {line} is no single assignment")
    (found,) = simple
    torch = module.alias("torch")
    context = cst.WithItem(cst.parse_expression(f"{torch or 'torch'}.no_grad()"))
    block = cst.With(
        [context],
        cst.IndentedBlock([found.with_changes(leading_lines=())]),
        leading_lines=found.leading_lines,
    )
    tree = replaced(module.tree, found, block)
    return tree if torch else with_import(tree, "torch")


def _outside_training(context: RemedyContext, site: SeamSite) -> Proposal:
    """A function with a loop of its own, that is no part of the training step."""
    backward = [call for call in context.measurement.sites if call.seam == autograd.BACKWARD.event]
    trained = {call.function for call in backward} | {name for call in backward for _, name, _ in call.callers}
    if site.function in trained or any(name in trained for _, name, _ in site.callers[:1]):
        raise NotApplicable(f"{site.function} is part of the training step")
    frame = (site.file, site.function, site.line)
    return _proposal(context, frame, loop=True, share=context.share("validation"))


def _without_training(context: RemedyContext, site: SeamSite) -> Proposal:
    """The nearest function around the call that has a loop, or the call's own; at module level, the whole program."""
    own = (site.file, site.function, site.line)
    candidates = [*((frame, True) for frame in (own, *site.callers)), (own, False)]
    share = context.share("forward")
    return first_of(candidates, lambda candidate: _proposal(context, candidate[0], loop=candidate[1], share=share), "")


def _proposal(context: RemedyContext, frame: tuple[str, str, int], *, loop: bool, share: float) -> Proposal:
    file, function, line = frame
    path = context.user_file(file)
    if path is None:
        raise NotApplicable("the model is called in a library")
    module = context.sources.module(path)
    at_module_level = function == "<module>"
    tree = with_gradients_off(module) if at_module_level else with_no_grad(module, function, line, loop=loop)
    return Proposal(
        f"no gradients in {function} ({path.name}:{line})",
        speedup_without(share, NO_GRADIENTS_SAVES),
        f"it calls the model for {percent(share)} of the step and never goes backward",
        sources=context.sources.with_module(path, tree),
        key=context.key(path, module.full_name(module.function(function, line) or module.tree)),
    )


def with_gradients_off(module: SourceModule) -> cst.Module:
    """A line after the imports of a script that never asks for a gradient. Raises NotApplicable where it may."""
    torch = module.alias("torch")
    if torch is None or any(name.value in _ASKING for name in module.all(cst.Name)):
        raise NotApplicable("the script may ask for gradients, or does not import torch")
    return with_statement_after_imports(module.tree, f"{torch}.set_grad_enabled(False)")


def with_no_grad(module: SourceModule, function: str, line: int, *, loop: bool = True) -> cst.Module:
    """A decorator on the function. Raises NotApplicable where backward is in it, or, if that is asked for, no loop."""
    target = module.function(function, line)
    if target is None or _goes_backward(target) or (loop and not _has_loop(target)):
        raise NotApplicable(f"{function} may go backward, or has no loop")
    torch = module.alias("torch")
    decorator = cst.Decorator(cst.parse_expression(f"{torch or 'torch'}.no_grad()"))
    tree = replaced(module.tree, target, target.with_changes(decorators=[*target.decorators, decorator]))
    return tree if torch else with_import(tree, "torch")


def _goes_backward(node: cst.CSTNode) -> bool:
    """Whether gradients are asked for in it; a generator counts too, for its caller's steps run in between."""
    return any(
        isinstance(inner, (cst.Yield, cst.Await))
        or (isinstance(inner, cst.Attribute) and inner.attr.value in _ASKING_ATTRIBUTES)
        for inner in walk(node)
    )


def _has_loop(node: cst.CSTNode) -> bool:
    return any(isinstance(inner, (cst.For, cst.While, cst.CompFor)) for inner in walk(node))


REMEDY = NoGrad()
