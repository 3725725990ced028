"""Tensors that a loop takes the parts of one by one (``x[:, t]``), and the same with all of them taken before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import Assignment, ExpressionContext

from unstall.optimize.source.bindings import may_change_in_place
from unstall.optimize.source.edit import Edit, edited, preceded_by, put, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.toplevel import with_runtime

_LOOPS = (cst.For, cst.While, cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)
_METHODS = ("select", "narrow")


@dataclass(frozen=True)
class SlicedTensor:
    """A local variable whose parts a loop takes."""

    function: cst.FunctionDef
    loop: cst.CSTNode
    """The outermost one that does not bind it."""
    name: str
    reads: tuple[cst.Name, ...]
    """Where it is asked for a part."""


def sliced_tensors(module: SourceModule, line: int) -> Iterator[SlicedTensor]:
    """Those that a line takes the parts of, in a loop that it is in."""
    names = [
        node for node in module.all(cst.Name)
        if module.is_on(node, line) and _takes_part(module, node)
    ]  # fmt: skip
    for name in {node.value: node for node in names}.values():
        whole = _sliced(module, name)
        if whole is not None:
            yield whole


def sliced_once(module: SourceModule, whole: SlicedTensor) -> cst.Module:
    """The tree in which the parts are taken at once. Raises AnalysisRefused where one may be changed."""
    for node in module.inside(whole.loop):
        if isinstance(node, cst.Name) and node.value == whole.name and may_change_in_place(module, node):
            raise AnalysisRefused(f"line {module.first_line(node)} may change {whole.name} in place")
    name = fresh_name(f"{whole.name}_parts", {node.value for node in module.all(cst.Name)})
    line = module.statement(whole.loop)
    before = statement(module.tree, f"{name} = _TensorParts({whole.name})")
    edits: dict[cst.CSTNode, Edit] = {read: put(cst.Name(name)) for read in whole.reads}
    edits[line] = preceded_by([before])
    tree = edited(module.tree, edits)
    return with_runtime(tree, "tensor_parts")


def _takes_part(module: SourceModule, node: cst.Name) -> bool:
    above = module.parent(node)
    if isinstance(above, cst.Subscript) and above.value is node:
        return module.context(above) is ExpressionContext.LOAD
    if isinstance(above, cst.Attribute) and above.value is node and above.attr.value in _METHODS:
        called = module.parent(above)
        return isinstance(called, cst.Call) and called.func is above
    return False


def _sliced(module: SourceModule, name: cst.Name) -> SlicedTensor | None:
    function = module.enclosing(name, cst.FunctionDef)
    if function is None:
        return None
    bound = module.bindings(name)
    if not bound or not all(isinstance(each, Assignment) for each in bound):
        return None
    places = [each.node for each in bound if isinstance(each, Assignment)]
    if not all(function in module.ancestors(place) for place in places):
        return None
    loop: cst.CSTNode | None = None
    for above in module.ancestors(name):
        if above is function:
            break
        if isinstance(above, _LOOPS):
            inside = module.inside(above)
            if any(place in inside for place in places):
                break
            loop = above
    if loop is None or not any(module.first_line(place) < module.first_line(loop) for place in places):
        return None
    reads = tuple(
        node for node in module.inside(loop)
        if isinstance(node, cst.Name) and node.value == name.value and _takes_part(module, node)
    )  # fmt: skip
    return SlicedTensor(function, loop, name.value, reads)
