"""``model.compile()``: torch's compiler fuses small operators; in place, so that checkpoints keep their names."""

from __future__ import annotations

import shutil

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy, first_of
from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.files import Sources
from unstall.optimize.source.module import dotted, walk
from unstall.optimize.source.places import CallSite
from unstall.optimize.source.toplevel import with_import
from unstall.text.units import percent

_MIN_SHARE = 0.4
_REMOVED = {"overhead-bound": 0.4, "compute-bound": 0.12}  # of the model's time; the rest is arithmetic that remains
_REMOVED_BY_GRAPHS = {"overhead-bound": 0.6, "sync-bound": 0.2}
_REMOVED_ELSE = 0.05


class CompiledModel(Remedy):
    """Compile the model that the optimizer updates, when the model is what takes the time."""

    name = "compiled-model"
    brief = "`model.compile()`; on a GPU also with CUDA graphs"
    patterns = ("overhead-bound", "compute-bound", "sync-bound")
    exactness = "close"
    """Fused operators round in other places."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        share = context.share("forward", "backward")
        if context.measurement.model.compiled:
            raise NotApplicable("the model is compiled")
        if share < _MIN_SHARE:
            raise NotApplicable(f"the model takes {percent(share)} of the step: there is little to compile")
        if not context.on_gpu and not (shutil.which("g++") or shutil.which("clang++")):
            raise NotApplicable("torch.compile needs a C++ compiler, and none is installed")
        return [_proposal(context, call, share, removed) for call, removed in _ways(context)]


def _proposal(context: RemedyContext, call: str, share: float, removed: float) -> Proposal:
    sources, where = with_line_after_optimizer(context, f"{{model}}.{call}")
    return Proposal(
        f"model.{call} ({where})",
        speedup_without(share, removed),
        f"the model takes {percent(share)} of the step; compiling takes a while at every start",
        sources=sources,
        key=call,
    )


def _ways(context: RemedyContext) -> list[tuple[str, float]]:
    """(call, the part of the model's time that it removes); on a GPU with CUDA graphs too: one launch, many kernels."""
    pattern = context.report.verdict.pattern
    ways = [("compile()", _REMOVED.get(pattern, _REMOVED_ELSE))]
    if context.on_gpu:
        ways.append(('compile(mode="reduce-overhead")', _REMOVED_BY_GRAPHS.get(pattern, _REMOVED_ELSE)))
    return ways


def with_line_after_optimizer(context: RemedyContext, line: str, *, imports: str = "") -> tuple[Sources, str]:
    """The sources with a statement after the optimizer is made, ``{model}`` and ``{torch}`` in it, and its place.

    ``imports``: a module that the statement needs. Raises NotApplicable where the program has no such
    place of its own.
    """
    nowhere = "the optimizer is not made in the program's own code"
    return first_of(context.runtime.optimizers, lambda one: _with_line_after(context, one.call, line, imports), nowhere)


def _with_line_after(context: RemedyContext, site: CallSite | None, line: str, imports: str) -> tuple[Sources, str]:
    path, module, call = context.locate(site)
    model, made = _model_of(call), module.statement(call)
    if not isinstance(made, cst.SimpleStatementLine) or ("{model}" in line and model is None):
        raise NotApplicable("the model's name is not to be seen where the optimizer is made")
    added = statement(module.tree, line.format(model=model, torch=module.alias("torch") or "torch"))
    tree = replaced(module.tree, made, made, added)
    tree = with_import(tree, imports) if imports else tree
    return context.sources.with_module(path, tree), f"{path.name}:{module.first_line(call)}"


def _model_of(call: cst.Call) -> str | None:
    """``X`` of the ``X.parameters()`` in an optimizer's arguments."""
    for arg in call.args:
        for node in walk(arg.value):
            if isinstance(node, cst.Call) and dotted(node.func).endswith(".parameters"):
                return dotted(node.func).removesuffix(".parameters")
    return None


REMEDY = CompiledModel()
