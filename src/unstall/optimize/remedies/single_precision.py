"""A model in float64, as it comes of NumPy's default, in float32: half the bytes and twice the arithmetic a second."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError, Sources
from unstall.records.measurements import Site
from unstall.text.units import percent

NAME = "single-precision"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""Within the tolerance of float32."""

_DOUBLE = ("torch.float64", "torch.double")


def propose(case: Case) -> list[Proposal] | Unfit:
    """Where the model is made double, and the loop that feeds it."""
    if case.measurement.model.dtype != "torch.float64":
        return Unfit(f"the model is in {case.measurement.model.dtype.removeprefix('torch.') or 'no known type'}")
    share = case.share("forward", "backward", "optimizer")
    reason = "the place where the model becomes float64 was not found in the program's own code"
    for site in case.measurement.sites:
        path = case.user_file(site.file)
        if site.seam != "~forward" or path is None:
            continue
        try:
            sources = in_single(case.sources, path, site)
        except SourceError as error:
            reason = str(error)
            continue
        if sources is not None:
            return [
                Proposal(
                    NAME, f"float32 instead of float64 ({path.name})", EXACTNESS, predicted_without(share, 0.5),
                    f"the model takes {percent(share)} of the step in float64", sources=sources, key=path.name,
                )
            ]  # fmt: skip
    return Unfit(reason)


def in_single(sources: Sources, path: Path, site: Site) -> Sources | None:
    """The sources with the model kept single, and each batch of the loop around the model's call converted to it."""
    found = rewrite.Found(sources.parse(path))
    module = found.module
    changed = module.visit(_Single())
    if changed.deep_equals(module):
        return None
    loop = _loop(rewrite.Found(changed), site)
    if loop is None:
        raise SourceError(f"the loop that calls the model in {site.function} was not found")
    names = _names(loop.target)
    if not names:
        raise SourceError("the loop's batch has no names")
    text = conversion(names)
    statement = cst.parse_statement(text, config=changed.config_for_parsing)
    body = loop.body
    if not isinstance(body, cst.IndentedBlock):
        return None
    new = loop.with_changes(body=body.with_changes(body=[statement, *body.body]))
    return sources.with_module(path, rewrite.replaced(changed, loop, new))


def conversion(names: list[str]) -> str:
    """A statement that makes the double tensors among these names single."""
    if len(names) == 1:
        return f"{names[0]} = {names[0]}.float() if {names[0]}.is_floating_point() else {names[0]}\n"
    together = ", ".join(names)
    return f"{together} = (value.float() if value.is_floating_point() else value for value in ({together}))\n"


class _Single(cst.CSTTransformer):
    """``model.double()`` and its kin, where a name is set to the same name made double; the default type."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = rewrite.name_of(updated_node)
        args = updated_node.args
        if name.endswith("set_default_dtype") and args and rewrite.dotted(args[0].value) in _DOUBLE:
            return updated_node.with_deep_changes(args[0], value=cst.parse_expression("torch.float32"))
        return updated_node

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        call = updated_node.value
        if len(updated_node.targets) != 1 or not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return updated_node
        same = rewrite.dotted(updated_node.targets[0].target) == rewrite.dotted(call.func.value)
        built = isinstance(call.func.value, cst.Call)
        to_double = call.func.attr.value == "double" and not call.args
        to_type = call.func.attr.value == "to" and [rewrite.dotted(arg.value) in _DOUBLE for arg in call.args] == [True]
        if (same or built) and (to_double or to_type):
            func = call.func.with_changes(attr=cst.Name("float"))
            return updated_node.with_changes(value=call.with_changes(func=func, args=[]))
        return updated_node


def _loop(found: rewrite.Found, site: Site) -> cst.For | None:
    """The innermost ``for`` around the line that calls the model: lines before it did not move."""
    loops = [
        loop for loop in found.nodes(cst.For) if found.place(loop).start.line <= site.line <= found.place(loop).end.line
    ]
    return max(loops, key=lambda loop: found.place(loop).start.line, default=None)


def _names(target: cst.BaseExpression) -> list[str]:
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, (cst.Tuple, cst.List)):
        names = [element.value.value if isinstance(element.value, cst.Name) else "" for element in target.elements]
        return names if all(names) else []
    return []
