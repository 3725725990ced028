"""A model in float64, as it comes of NumPy's default, in float32: half the bytes and twice the arithmetic a second."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unstall.child.seams import modules
from unstall.diagnose.double_precision import saved_by_single
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, first_of
from unstall.optimize.source.bindings import only_names
from unstall.optimize.source.edit import Edit, edited, put, statement
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.module import SourceModule, dotted
from unstall.records.measurements import SeamSite
from unstall.text.units import percent

_NOWHERE = "the place where the model becomes float64 is not in the program's own code"
_DOUBLE = ("torch.float64", "torch.double")


class SinglePrecision(Remedy):
    """Where the model is made double, and the loop that feeds it."""

    name = "single-precision"
    brief = "a model in float64 by accident runs in float32"
    needs = "`model.double()` or a float64 default in the script that calls the model"
    patterns = ("compute-bound",)
    exactness = "reduced"
    """float32 has 24 bits of precision, float64 53."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        dtype = context.measurement.model.dtype
        if dtype != "torch.float64":
            raise NotApplicable(f"the model is in {dtype.removeprefix('torch.') or 'no known type'}")
        return [
            first_of(
                (site for site in context.measurement.sites if site.seam == modules.FORWARD.event),
                lambda site: _proposal(context, site),
                _NOWHERE,
            )
        ]


def _proposal(context: RemedyContext, site: SeamSite) -> Proposal:
    path = context.user_file(site.file)
    if path is None:
        raise NotApplicable(_NOWHERE)
    share = context.share("forward", "backward", "optimizer")
    return Proposal(
        f"float32 instead of float64 ({path.name})",
        speedup_without(share, saved_by_single(context.measurement)),
        f"the model takes {percent(share)} of the step in float64",
        sources=context.sources.with_module(path, in_single(context.sources.module(path), site)),
        key=context.key(path),
    )


def in_single(module: SourceModule, site: SeamSite) -> cst.Module:
    """The tree with the model in single precision, and each batch of the loop around its call converted to it.

    Raises NotApplicable where nothing is made float64, or the batch cannot be converted.
    """
    edits = _to_single(module)
    if not edits:
        raise NotApplicable(f"the file that calls the model in {site.function} makes nothing float64")
    loop = module.innermost(site.line, cst.For)
    if loop is None:
        raise NotApplicable(f"the loop that calls the model in {site.function} was not found")
    names = only_names(loop.target)
    if not names or not isinstance(loop.body, cst.IndentedBlock):
        raise NotApplicable("the loop's batch has no names")
    first = statement(module.tree, conversion(names))
    edits[loop.body] = lambda body: body.with_changes(body=[first, *body.body])
    return edited(module.tree, edits)


def conversion(names: list[str]) -> str:
    """A statement that makes the double tensors among these names single."""
    if len(names) == 1:
        return f"{names[0]} = {names[0]}.float() if {names[0]}.is_floating_point() else {names[0]}\n"
    together = ", ".join(names)
    return f"{together} = (value.float() if value.is_floating_point() else value for value in ({together}))\n"


def _to_single(module: SourceModule) -> dict[cst.CSTNode, Edit]:
    """``model.double()`` and its kin, where a name is set to the same name made double; the default type."""
    edits: dict[cst.CSTNode, Edit] = {}
    for call in module.all(cst.Call):
        if dotted(call.func).endswith("set_default_dtype") and call.args and module.name(call.args[0].value) in _DOUBLE:
            torch = module.alias("torch") or "torch"
            edits[call.args[0].value] = put(cst.parse_expression(f"{torch}.float32"))
    for assignment in module.all(cst.Assign):
        if _makes_double(module, assignment):
            edits[assignment.value] = _with_float
    return edits


def _makes_double(module: SourceModule, assignment: cst.Assign) -> bool:
    call = assignment.value
    if len(assignment.targets) != 1 or not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    rebinds_itself = dotted(assignment.targets[0].target) == dotted(call.func.value)
    if not rebinds_itself and not isinstance(call.func.value, cst.Call):
        return False
    if call.func.attr.value == "double":
        return not call.args
    return call.func.attr.value == "to" and [module.name(arg.value) in _DOUBLE for arg in call.args] == [True]


def _with_float(call: Any) -> cst.Call:
    return call.with_changes(func=call.func.with_changes(attr=cst.Name("float")), args=[])  # type: ignore[no-any-return]


REMEDY = SinglePrecision()
