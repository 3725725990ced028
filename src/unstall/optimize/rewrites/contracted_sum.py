"""Sums of a product of two tensors that is made for nothing else, and the same as one contraction.

The product of an outer or a broadcast multiplication has as many elements as both tensors have axes between them; a
contraction, which is a matrix product, stores none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from unstall.optimize.source.bindings import bound_just_before
from unstall.optimize.source.edit import keyword
from unstall.optimize.source.handed_calls import calls_in
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.product_uses import EINSUM, ProductUse, equation_of, operands_of

_LABELS = re.compile(r"\.\.\.|[A-Za-z]")


def contractions(module: SourceModule, part: cst.FunctionDef | cst.Module) -> Iterator[ProductUse]:
    """Those in a function, or at the top level of a file; none in the functions within."""
    for call in calls_in(module, part, lambda call: True):
        summed = _summed(module, call)
        if summed is None:
            continue
        product, named = bound_just_before(module, summed)
        written = _written(module, call, product)
        if written:
            yield ProductUse(call, product, named, written)


def merged(product: str, kept: str) -> str | None:
    """One equation for an einsum of two operands and one of its result that only sums; None where there is none.

    >>> merged("n...i,n...j->n...ij", "n...ij->nij")
    'n...i,n...j->nij'
    """
    operands, arrow, made = product.replace(" ", "").partition("->")
    taken, second, wanted = kept.replace(" ", "").partition("->")
    labels, names, left = (_LABELS.findall(text) for text in (made, taken, wanted))
    if not (arrow and second and operands.count(",") == 1 and "," not in taken and len(labels) == len(names)):
        return None
    known = dict(zip(names, labels))
    same_ellipsis = all((name == "...") == (label == "...") for name, label in known.items())
    if not same_ellipsis or len(known) < len(names) or not set(left) < set(names) or len(left) > len(set(left)):
        return None
    return f"{operands}->{''.join(known[name] for name in left)}"


def _summed(module: SourceModule, call: cst.Call) -> cst.BaseExpression | None:
    """What a call sums over some axes; None where it is no such call."""
    name, args = module.name(call.func), call.args
    if name == EINSUM and len(args) == 2:
        return args[1].value
    if name == "torch.sum" and len(args) > 1 and args[0].keyword is None:
        return args[0].value
    is_method = isinstance(call.func, cst.Attribute) and call.func.attr.value == "sum" and name != "torch.sum"
    return call.func.value if is_method and args and isinstance(call.func, cst.Attribute) else None


def _written(module: SourceModule, call: cst.Call, product: cst.BaseExpression) -> str:
    """The contraction in the source; empty where these are none."""
    if module.name(call.func) == EINSUM:
        return _einsum(module, call, product)
    if not isinstance(product, cst.BinaryOperation) or not isinstance(product.operator, cst.Multiply):
        return ""
    sides = product.left, product.right
    given = call.args[1:] if module.name(call.func) == "torch.sum" else call.args
    known = all(arg.keyword is None or arg.keyword.value in ("dim", "keepdim") for arg in given)
    has_dim = bool(given) and (given[0].keyword is None or keyword(call, "dim") is not None)
    if not known or not has_dim or len(given) > 2 or any(arg.star for arg in given):
        return ""
    if not any(_adds_an_axis(side) for side in sides):
        return ""
    rest = ", ".join(module.code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in given)
    return f"_Contracted.sum({', '.join(map(module.code, sides))}, {rest})"


def _einsum(module: SourceModule, call: cst.Call, product: cst.BaseExpression) -> str:
    equation = merged(equation_of(module, product, 2), equation_of(module, call, 1))
    if equation is None or not isinstance(product, cst.Call):
        return ""
    return f'_Contracted.einsum("{equation}", {operands_of(module, product)})'


def _adds_an_axis(node: cst.BaseExpression) -> bool:
    """Whether a side of a product is spread along an axis that it has not: ``x[:, None]``, ``x.unsqueeze(1)``."""
    if isinstance(node, cst.Subscript):
        indices = [part.slice.value for part in node.slice if isinstance(part.slice, cst.Index)]
        return any(isinstance(index, cst.Name) and index.value == "None" for index in indices)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return node.func.attr.value == "unsqueeze"
