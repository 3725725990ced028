"""Products of two tensors that are made for one use, and calls of ``torch.einsum`` as the source has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from unstall.optimize.source.edit import Edit, edited, put
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_runtime

EINSUM = "torch.einsum"


@dataclass(frozen=True)
class ProductUse:
    """A call that something smaller than the product comes of, and what gives the same without making that."""

    use: cst.Call
    product: cst.BaseExpression
    named: cst.SimpleStatementLine | None
    """The statement before that of the use, where that names the product."""
    written: str
    """What stands for the use."""

    @property
    def nodes(self) -> tuple[cst.CSTNode, ...]:
        """What takes the time."""
        return self.product, self.use


def rewritten(module: SourceModule, found: Sequence[ProductUse], runtime: str) -> cst.Module:
    """The tree with what stands for these, and that module of the runtime.

    Raises NameTaken where the file's names are in the way.
    """
    edits: dict[cst.CSTNode, Edit] = {each.use: put(cst.parse_expression(each.written)) for each in found}
    for each in found:
        if each.named is not None:
            edits[each.named] = put()
    return with_runtime(edited(module.tree, edits), runtime)


def equation_of(module: SourceModule, node: cst.BaseExpression, operands: int) -> str:
    """That of an einsum with so many operands, without spaces; empty where a node is none, or it is computed."""
    if not isinstance(node, cst.Call) or module.name(node.func) != EINSUM or len(node.args) != operands + 1:
        return ""
    given = node.args[0].value
    text = given.evaluated_value if isinstance(given, cst.SimpleString) else ""
    is_plain = not any(arg.star or arg.keyword for arg in node.args)
    return text.replace(" ", "") if isinstance(text, str) and is_plain else ""


def operands_of(module: SourceModule, call: cst.Call) -> str:
    """The operands of an einsum, with commas between."""
    return ", ".join(module.code(arg.value) for arg in call.args[1:])
