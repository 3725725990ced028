"""Expressions with holes, to recognise the forms in which programs write one thing: ``A @ B``, ``S.softmax(-1)``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import libcst as cst

from unstall.optimize.source.module import SourceModule, dotted

_LAYOUT = (cst.BaseParenthesizableWhitespace, cst.Comma, cst.LeftParen, cst.RightParen, cst.AssignEqual, cst.Dot)
Holes = dict[str, cst.BaseExpression]


class Templates:
    """Several forms of one thing. A single capital letter stands for any expression, the same one if it recurs.

    Layout does not matter, and neither does the name by which a library is imported: ``torch.softmax`` in a template
    is that function under whatever name.
    """

    def __init__(self, forms: Iterable[str]):
        self.forms = [cst.parse_expression(form) for form in forms]

    def match(self, module: SourceModule, node: cst.CSTNode) -> Holes | None:
        """What stands in the holes of the first form that a node of the module has; None where it has none."""
        for form in self.forms:
            holes: Holes = {}
            if _matches(module, form, node, holes):
                return holes
        return None


def _matches(module: SourceModule, form: Any, node: Any, holes: Holes) -> bool:
    if isinstance(form, cst.Name) and len(form.value) == 1 and form.value.isupper():
        present = holes.setdefault(form.value, node)
        return present is node or module.code(present) == module.code(node)
    if type(form) is not type(node):
        return False
    if isinstance(form, (cst.Name, cst.Integer)):
        return bool(form.value == node.value)
    if isinstance(form, cst.SimpleString):
        return form.evaluated_value == node.evaluated_value
    if isinstance(form, cst.Attribute):
        if len(dotted(form).partition(".")[0]) > 1:
            return module.name(node) == dotted(form)
        return bool(form.attr.value == node.attr.value) and _matches(module, form.value, node.value, holes)
    form_parts, parts = _parts(form), _parts(node)
    return len(form_parts) == len(parts) and all(
        _matches(module, form_part, part, holes) for form_part, part in zip(form_parts, parts)
    )


def _parts(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [part for part in node.children if not isinstance(part, _LAYOUT)]
