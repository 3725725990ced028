"""The ways in which programs write the operations that attention is made of, recognised in their syntax."""

from __future__ import annotations

import libcst as cst

from unstall.optimize.source.module import SourceModule, number_of
from unstall.optimize.source.templates import Templates
from unstall.optimize.thresholds import NO_WEIGHT

_MATRIX_PRODUCT = Templates(["A @ B", "torch.matmul(A, B)", "torch.bmm(A, B)", "A.matmul(B)", "A.bmm(B)"])
_TRANSPOSED = Templates(
    ["K.mT", "K.permute(0, 1, 3, 2)"]
    + [
        f"K.{name}({dimensions})"
        for name in ("transpose", "swapaxes")
        for dimensions in ("-2, -1", "-1, -2", "2, 3", "3, 2")
    ]
)
_SPREAD_SCORES = Templates(
    f"(A.unsqueeze({a}) * B.unsqueeze({b})).sum({dim}-1)" for a, b in ((3, 2), (2, 1), (-2, -3)) for dim in ("", "dim=")
)
"""Products of each query with each key by broadcasting, summed over the features."""
_SPREAD_MEAN = Templates(
    f"(A.unsqueeze(-1) * B.unsqueeze({b})).sum({dim}{keys})"
    for b, keys in ((2, 3), (1, 2), (-3, -2))
    for dim in ("", "dim=")
)
"""The values, weighted by broadcasting and summed over the keys."""
_SOFTMAX = Templates(
    f"{called}{dim}-1)"
    for called in ("torch.softmax(S, ", "torch.nn.functional.softmax(S, ", "S.softmax(")
    for dim in ("", "dim=")
)
_MASKED_FILL, _WHERE = Templates(["S.masked_fill(M, V)"]), Templates(["torch.where(M, S, V)"])
_VERY_NEGATIVE = Templates(
    ["-math.inf", "-torch.inf", "-numpy.inf", "float('-inf')", "-float('inf')", "torch.finfo(D).min"]
)
_NOT, _EQUAL, _UNEQUAL = Templates(["~M"]), Templates(["A == B"]), Templates(["A != B"])
_ATOMS = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BaseNumber, cst.BaseString)
Pair = tuple[cst.BaseExpression, cst.BaseExpression]


def weighted_mean(module: SourceModule, node: cst.CSTNode) -> Pair | None:
    """(weights, values) of their product: as matrices, or by broadcasting and a sum over the keys."""
    holes = _MATRIX_PRODUCT.match(module, node) or _SPREAD_MEAN.match(module, node)
    return (holes["A"], holes["B"]) if holes else None


def products(module: SourceModule, node: cst.CSTNode) -> Pair | None:
    """(queries, keys) of their products: as matrices, or by broadcasting and a sum over the features."""
    matrices = _MATRIX_PRODUCT.match(module, node)
    if matrices:
        keys = _TRANSPOSED.match(module, matrices["B"])
        return (matrices["A"], keys["K"]) if keys else None
    holes = _SPREAD_SCORES.match(module, node)
    return (holes["A"], holes["B"]) if holes else None


def is_spread(module: SourceModule, node: cst.CSTNode) -> bool:
    """Whether it is a product by broadcasting and a sum, which keeps every product of two numbers in memory first."""
    return _SPREAD_MEAN.match(module, node) is not None


def softmaxed(module: SourceModule, node: cst.CSTNode) -> cst.BaseExpression | None:
    """What the softmax over the last dimension is taken of."""
    holes = _SOFTMAX.match(module, node)
    return holes["S"] if holes else None


def masked(module: SourceModule, node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression, str] | None:
    """(scores, mask, source of the mask of what counts) of ``masked_fill(m, -inf)`` and ``where(m, s, -inf)``."""
    filled, chosen = _MASKED_FILL.match(module, node), _WHERE.match(module, node)
    holes = filled or chosen
    if not holes or not _is_very_negative(module, holes["V"]):
        return None
    counting = negated(module, holes["M"]) if filled else enclosed(module, holes["M"])
    return holes["S"], holes["M"], counting


def _is_very_negative(module: SourceModule, node: cst.BaseExpression) -> bool:
    """Whether the softmax of it is as good as none: minus infinity, or nearly."""
    number = number_of(node)
    return _VERY_NEGATIVE.match(module, node) is not None if number is None else number <= NO_WEIGHT


def negated(module: SourceModule, mask: cst.BaseExpression) -> str:
    """The mask of what counts, where the mask of what does not is given."""
    inner = _NOT.match(module, mask)
    if inner:
        return enclosed(module, inner["M"])
    for comparison, opposite in ((_EQUAL, "!="), (_UNEQUAL, "==")):
        sides = comparison.match(module, mask)
        if sides:
            return f"({module.code(sides['A'])} {opposite} {module.code(sides['B'])})"
    return f"~{enclosed(module, mask)}"


def enclosed(module: SourceModule, node: cst.BaseExpression) -> str:
    """An expression's source, in brackets unless it has them or binds tightly."""
    text = module.code(node)
    return text if isinstance(node, _ATOMS) or node.lpar else f"({text})"
