"""A part of the model that no optimizer updates is frozen: backward does not compute its gradients."""

from __future__ import annotations

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable, located
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.thresholds import LEAST_SHARE
from unstall.text.units import percent


class FreezeParameters(Remedy):
    """Behind the line that makes the only optimizer, for the parts beside the one that it is given."""

    name = "freeze-parameters"
    brief = "a part of the model whose gradients no optimizer uses is frozen"
    needs = "one optimizer, made of the parameters of a part of the model: `SGD(model.head.parameters())`"
    patterns = ("compute-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        model = context.measurement.model
        share = context.share("backward") * model.unused_gradients
        parts = [part for part in model.idle_parts if "." not in part]
        if share < LEAST_SHARE or not parts:
            raise NotApplicable("optimizers use the gradients that backward computes")
        if len(context.runtime.optimizers) != 1:
            raise NotApplicable("the program makes more than one optimizer")
        (optimizer,) = context.runtime.optimizers
        path, module, call = context.locate(optimizer.call, optimizer.type)
        line = module.statement(call)
        with located(path.name):
            model_name = _model(module, call)
        lines = [f"{model_name}.{part}.requires_grad_(False)" for part in parts]
        tree = replaced(module.tree, line, line, *(statement(module.tree, text) for text in lines))
        return [
            Proposal(
                f"{', '.join(parts)} frozen ({path.name}:{module.first_line(call)})",
                speedup_without(share),
                f"gradients that no optimizer uses take {percent(share)} of the step",
                sources=context.sources.with_module(path, tree),
                lines=Lines.of(path, module, line),
            )
        ]


def _model(module: SourceModule, call: cst.Call) -> str:
    """Of ``SGD(model.head.parameters())``: ``model``. Raises AnalysisRefused where others may be updated later."""
    others = [
        other for other in module.all(cst.Call)
        if other is not call and (
            (module.name(other).startswith("torch.optim.") and "lr_scheduler" not in module.name(other))
            or module.name(other).endswith("add_param_group")
        )
    ]  # fmt: skip
    if others:
        raise AnalysisRefused(f"line {module.first_line(others[0])} may give an optimizer other parameters")
    given = call.args[0].value if call.args else None
    method = given.func if isinstance(given, cst.Call) else None
    part = method.value if isinstance(method, cst.Attribute) and method.attr.value == "parameters" else None
    model = dotted(part.value) if isinstance(part, cst.Attribute) else ""
    if not model:
        raise AnalysisRefused("the optimizer is given other things than the parameters of one part of the model")
    return model


REMEDY = FreezeParameters()
