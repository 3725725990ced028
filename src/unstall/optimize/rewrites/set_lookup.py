"""Lists that values are looked for in (``x in self.seen``), and the same with a set beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.optimize.source.bindings import may_change_in_place
from unstall.optimize.source.edit import Edit, edited, put
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, is_reference
from unstall.optimize.source.toplevel import with_runtime

_GROWS = ("append", "extend")


def lookups(module: SourceModule, line: int) -> Iterator[cst.Comparison]:
    """What a line asks by ``in`` or ``not in`` of a name or an attribute."""
    for node in module.all(cst.Comparison):
        if module.is_on(node, line) and len(node.comparisons) == 1:
            target = node.comparisons[0]
            if isinstance(target.operator, (cst.In, cst.NotIn)) and is_reference(target.comparator):
                yield node


def looked_up(module: SourceModule, found: Sequence[cst.Comparison]) -> cst.Module:
    """The tree that asks a set. Raises AnalysisRefused where the file changes what is asked but by adding to it."""
    edits: dict[cst.CSTNode, Edit] = {}
    for node in found:
        target = node.comparisons[0]
        _refuse_other_changes(module, target.comparator)
        value, items = (module.code(each) for each in (node.left, target.comparator))
        call = f"_LookedUp.holds({value}, {items})"
        negated = isinstance(target.operator, cst.NotIn)
        edits[node] = put(cst.parse_expression(f"(not {call})" if negated else call))
    return with_runtime(edited(module.tree, edits), "looked_up")


def _refuse_other_changes(module: SourceModule, asked: cst.BaseExpression) -> None:
    spelled = module.code(asked)
    last = asked.attr.value if isinstance(asked, cst.Attribute) else ""
    for node in module.all(cst.Name, cst.Attribute):
        is_same = node.attr.value == last if isinstance(node, cst.Attribute) else module.code(node) == spelled
        if is_same and may_change_in_place(module, node) and not _only_grows(module, node):
            raise AnalysisRefused(f"line {module.first_line(node)} changes {spelled} otherwise than by adding to it")


def _only_grows(module: SourceModule, node: cst.CSTNode) -> bool:
    above = module.parent(node)
    if isinstance(above, cst.AugAssign):
        return isinstance(above.operator, cst.AddAssign)
    return isinstance(above, cst.Attribute) and above.attr.value in _GROWS
