"""Layers and methods of a model that compute from what may stay the same, and the same with their results kept."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from unstall.optimize.source.bindings import changing_name
from unstall.optimize.source.edit import Edit, edited, put
from unstall.optimize.source.effects import is_in_place
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.purity import Steadiness, attributes_read, is_model, method_of
from unstall.optimize.source.toplevel import with_runtime

_RUNTIME = "kept_results"
_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def layer_calls(module: SourceModule, line: int) -> list[cst.Call]:
    """The calls ``self.layer(value)`` on a line of a model's method, of what is no method itself."""
    return [call for call in module.all(cst.Call) if module.is_on(call, line) and _is_layer_call(module, call)]


def _is_layer_call(module: SourceModule, call: cst.Call) -> bool:
    cls = _model_of(module, call)
    if cls is None or not isinstance(call.func, cst.Attribute) or dotted(call.func.value) != "self":
        return False
    alone = len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star
    return alone and method_of(cls, call.func.attr.value) is None


def _model_of(module: SourceModule, node: cst.CSTNode) -> cst.ClassDef | None:
    """The class of a module of torch's that a node is in."""
    cls = module.enclosing(node, cst.ClassDef)
    return cls if cls is not None and is_model(module, cls) else None


def with_kept_calls(module: SourceModule, calls: Sequence[cst.Call]) -> cst.Module:
    """The tree in which the results of these calls are kept."""
    kept = cst.parse_expression("_KeptResults.of_layer")
    edits: dict[cst.CSTNode, Edit] = {
        call: put(call.with_changes(func=kept, args=[cst.Arg(call.func, comma=_COMMA), *call.args])) for call in calls
    }
    return with_runtime(edited(module.tree, edits), _RUNTIME)


def with_kept_method(module: SourceModule, method: cst.FunctionDef) -> cst.Module:
    """The tree that keeps a method's result. Raises AnalysisRefused where it is not that of its module's tensors."""
    names = ", ".join(f'"{name}"' for name in _computed_from(module, method))
    decorator = cst.Decorator(cst.parse_expression(f"_kept_results({names})"))
    return with_runtime(edited(module.tree, {method: put(method.with_changes(decorators=[decorator]))}), _RUNTIME)


def _computed_from(module: SourceModule, method: cst.FunctionDef) -> list[str]:
    """Attributes of ``self`` that a method computes from, and nothing else."""
    cls, name = _model_of(module, method), method.name.value
    params = method.params
    others = (*params.params[1:], *params.kwonly_params, *params.posonly_params, params.star_kwarg)
    if cls is None or method.decorators or any(others) or isinstance(params.star_arg, cst.Param):
        raise AnalysisRefused(f"{name} is no plain method without arguments of a model")
    steadiness = Steadiness(module, cls)
    steadiness.check(method.body)
    if steadiness.set_attributes or changing_name(module, method) is not None:
        raise AnalysisRefused(f"{name} sets or reads what may change")
    for node in module.inside(method.body):
        if not isinstance(node, cst.Call):
            continue
        if dotted(node.func).rpartition(".")[0] == "self":
            raise AnalysisRefused(f"{name} calls another method or layer")
        if is_in_place(module.code(node.func)):
            raise AnalysisRefused(f"{name} changes tensors in place")
    read = sorted(attributes_read(module, [method.body]))
    if not read:
        raise AnalysisRefused(f"{name} reads no tensor of its module")
    return read
