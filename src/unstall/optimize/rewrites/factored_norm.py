"""Norms of products of two tensors, one for each example, and the same from the factors: the product is not made.

The gradient of a layer's weight for one example is such a product, of what went in and of the gradient of what came
out; Goodfellow, Efficient Per-Example Gradient Computations, 2015.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from unstall.optimize.source.bindings import bound_just_before
from unstall.optimize.source.edit import keyword
from unstall.optimize.source.handed_calls import calls_in
from unstall.optimize.source.module import SourceModule, number_of
from unstall.optimize.source.product_uses import ProductUse, equation_of, operands_of

_MATRIX_NORM = "torch.linalg.norm"
_NORMS = ("torch.norm", _MATRIX_NORM, "torch.linalg.vector_norm")
_ORDERS = ("p", "ord")


def product_norms(module: SourceModule, part: cst.FunctionDef | cst.Module) -> Iterator[ProductUse]:
    """Norms and sums of squares over all axes of a product but the first, in a function or at a file's top level.

    None in the functions within.
    """
    for call in calls_in(module, part, lambda call: True):
        normed = _normed(module, call)
        if normed is None:
            continue
        operand, what, dims = normed
        whole, is_flat = _unflattened(operand)
        product, named = bound_just_before(module, whole)
        equation = equation_of(module, product, 2)
        rank = len(equation.partition("->")[2])
        if not isinstance(product, cst.Call) or not is_of_examples(equation):
            continue
        if {dim % (2 if is_flat else rank) for dim in dims} == {*range(1, 2 if is_flat else rank)}:
            written = f'_FactoredNorm.{what}("{equation}", {operands_of(module, product)})'
            yield ProductUse(call, product, named, written)


def is_of_examples(equation: str) -> bool:
    """Whether an einsum of two operands has a result for each example, which both of them have, of other axes of each.

    >>> is_of_examples("ni,nj->nij"), is_of_examples("n...i,n...j->nij"), is_of_examples("ni,ij->nj")
    (True, True, False)
    """
    operands, arrow, made = equation.partition("->")
    left, comma, right = operands.partition(",")
    sides = [side.replace("...", "") for side in (left, right)]
    if not (arrow and comma and len(made) > 1) or "." in made or "," in right or (("..." in left) != ("..." in right)):
        return False
    if any(not side.isalpha() or len({*side}) < len(side) for side in (*sides, made)):
        return False
    shared = {*sides[0]} & {*sides[1]}
    own = ({*sides[0]} | {*sides[1]}) - shared
    return shared & {*made} == {made[0]} and own == {*made[1:]} and all({*side} & own for side in sides)


def _normed(module: SourceModule, call: cst.Call) -> tuple[cst.BaseExpression, str, list[int]] | None:
    """(of what, ``norms`` or ``squares``, over which axes) a call is; None where it is neither."""
    name, args = module.name(call.func), [*call.args]
    is_function = name in (*_NORMS, "torch.sum")
    if any(arg.star for arg in args) or not isinstance(call.func, cst.Attribute):
        return None
    if is_function and (not args or args[0].keyword is not None):
        return None
    operand, rest = (args[0].value, args[1:]) if is_function else (call.func.value, args)
    how = "norm" if name in _NORMS else call.func.attr.value
    if any(arg.keyword is not None and arg.keyword.value not in (*_ORDERS, "dim") for arg in rest):
        return None
    positional = [arg.value for arg in rest if arg.keyword is None]
    named = keyword(call, "dim")
    if how == "norm":
        orders = [*positional[:1], *(arg.value for arg in rest if arg.keyword and arg.keyword.value in _ORDERS)]
        dims = _numbers(named.value if named is not None else positional[1] if len(positional) == 2 else None)
        most = 0 if name == _MATRIX_NORM else 1  # of a matrix the largest singular value would be meant
        is_two = len(orders) <= most and all(number_of(order) == 2 for order in orders)
        return (operand, "norms", dims) if is_two and dims else None
    squared = _squared(operand) if how == "sum" else None
    dims = _numbers(named.value if named is not None else positional[0] if len(positional) == 1 else None)
    return (squared, "squares", dims) if squared is not None and dims else None


def _squared(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is squared: ``x ** 2``, ``x.pow(2)``, ``x.square()``; None where nothing is."""
    if isinstance(node, cst.BinaryOperation):
        is_square = isinstance(node.operator, cst.Power) and number_of(node.right) == 2
        return node.left if is_square else None
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    how, given = node.func.attr.value, [number_of(arg.value) for arg in node.args]
    return node.func.value if (how, given) in (("pow", [2]), ("square", [])) else None


def _unflattened(node: cst.BaseExpression) -> tuple[cst.BaseExpression, bool]:
    """What all axes but the first are put together of, and whether they are."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return node, False
    how, given = node.func.attr.value, [number_of(arg.value) for arg in node.args]
    is_flat = (how == "flatten" and given == [1]) or (
        how in ("view", "reshape") and len(given) == 2 and given[1] == -1 and given[0] != -1
    )
    return (node.func.value, True) if is_flat else (node, False)


def _numbers(node: cst.BaseExpression | None) -> list[int]:
    """Those of ``1`` or ``(1, 2)``; none where one of them is no whole number."""
    items = [item.value for item in node.elements] if isinstance(node, (cst.Tuple, cst.List)) else [node]
    numbers = [number_of(item) if item is not None else None for item in items]
    return [number for number in numbers if isinstance(number, int)] if None not in numbers else []
