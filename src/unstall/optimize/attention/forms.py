"""The ways in which programs write the operations that attention is made of, recognised in their syntax."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

_TRANSPOSED = {(-2, -1), (-1, -2), (2, 3), (3, 2)}
_BETWEEN_QUERIES = {(3, 2), (2, 1), (-2, -3)}  # unsqueeze of q and of k, for their products with one another
_OVER_KEYS = {(2, 3), (1, 2), (-3, -2)}  # unsqueeze of v, and the dimension of the sum
_VERY_NEGATIVE = -1e4
_INFINITIES = ("math.inf", "torch.inf", "numpy.inf")
_Pair = tuple[ast.expr, ast.expr]


@dataclass(frozen=True)
class Forms:
    """Recognises the operations of one module's source."""

    resolve: Callable[[str], str] = str
    """From a function's name as spelled to its qualified name."""

    def _called(self, node: ast.AST) -> str:
        """The qualified name of what a call calls; '' for what is no call."""
        return self.resolve(ast.unparse(node.func)) if isinstance(node, ast.Call) else ""

    def matmul(self, node: ast.AST) -> _Pair | None:
        """The two sides of a product of matrices."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return node.left, node.right
        if isinstance(node, ast.Call) and not node.keywords:
            if self._called(node) in ("torch.matmul", "torch.bmm") and len(node.args) == 2:
                return node.args[0], node.args[1]
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("matmul", "bmm") and len(node.args) == 1:
                return node.func.value, node.args[0]
        return None

    def mixed(self, node: ast.AST) -> _Pair | None:
        """(weights, values) of their product: as matrices, by einsum, or by broadcasting and a sum over the keys."""
        pair = self.matmul(node) or self._einsum(node, values=True)
        if pair is not None:
            return pair
        summed = _sum_of_product(node)
        if summed is None:
            return None
        (weights, a), (values, b), dim = summed
        return (weights, values) if a == -1 and (b, dim) in _OVER_KEYS else None

    def products(self, node: ast.AST) -> _Pair | None:
        """(queries, keys) of their products: as matrices, by einsum, or by broadcasting and a sum over the features."""
        pair = self._einsum(node, values=False)
        if pair is not None:
            return pair
        matrices = self.matmul(node)
        if matrices is not None:
            key = transposed(matrices[1])
            return (matrices[0], key) if key is not None else None
        summed = _sum_of_product(node)
        if summed is None:
            return None
        (q, a), (k, b), dim = summed
        return (q, k) if dim == -1 and (a, b) in _BETWEEN_QUERIES else None

    def _einsum(self, node: ast.AST, *, values: bool) -> _Pair | None:
        """``torch.einsum`` over leading dimensions that all have in common."""
        if not isinstance(node, ast.Call) or self._called(node) != "torch.einsum" or len(node.args) != 3:
            return None
        if not (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
            return None
        given, arrow, result = node.args[0].value.replace(" ", "").partition("->")
        first, _, second = given.partition(",")
        lead = first[:-2]
        if not arrow or len(set(first)) != len(first) or second[:-2] != lead or result[:-2] != lead:
            return None
        a, b, c = first[-2:], second[-2:], result[-2:]
        if len(a) != 2 or len(b) != 2 or len({*a, *b}) != 3:
            return None
        fits = a[1] == b[0] and c == a[0] + b[1] if values else a[1] == b[1] and c == a[0] + b[0]
        return (node.args[1], node.args[2]) if fits else None

    def softmaxed(self, node: ast.Call) -> ast.expr | None:
        """What the softmax over the last dimension is taken of."""
        if self._called(node) in ("torch.softmax", "torch.nn.functional.softmax"):
            return node.args[0] if node.args and _dim(node.args[1:], node.keywords) == -1 else None
        taken = _method(node, "softmax")
        return taken[0] if taken is not None and taken[1] == -1 else None

    def masked(self, node: ast.AST) -> tuple[ast.expr, ast.expr, str] | None:
        """(scores, mask, source of the mask of what counts) of ``masked_fill(m, -inf)`` and ``where(m, s, -inf)``."""
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        args = node.args
        if isinstance(node.func, ast.Attribute) and node.func.attr == "masked_fill" and len(args) == 2:
            scores, mask, value, kept = node.func.value, args[0], args[1], negated(args[0])
        elif self._called(node) == "torch.where" and len(args) == 3:
            mask, scores, value = args
            kept = enclosed(mask)
        else:
            return None
        return (scores, mask, kept) if self.is_very_negative(value) else None

    def is_very_negative(self, node: ast.expr) -> bool:
        """Whether the softmax of it is as good as none: minus infinity, or nearly."""
        number = _number(node)
        if number is not None:
            return number <= _VERY_NEGATIVE
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            infinite = self.resolve(ast.unparse(node.operand)) in _INFINITIES
            return infinite or ast.unparse(node.operand) == "float('inf')"
        least = isinstance(node, ast.Attribute) and node.attr == "min" and self._called(node.value) == "torch.finfo"
        return least or ast.unparse(node) == "float('-inf')"

    def first(self, node: ast.expr) -> str | None:
        """The name that a chain of methods or operations begins with."""
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Call):
                node = node.args[1] if self._called(node) == "torch.where" and len(node.args) > 1 else node.func
            elif isinstance(node, ast.Attribute):
                node = node.value
            elif isinstance(node, ast.BinOp):
                node = node.left
            else:
                return None
        return node.id


def is_spread(node: ast.AST) -> bool:
    """Whether it is a product by broadcasting and a sum, which keeps every product of two numbers in memory first."""
    return _sum_of_product(node) is not None


def _sum_of_product(node: ast.AST) -> tuple[tuple[ast.expr, int], tuple[ast.expr, int], int] | None:
    """``(a.unsqueeze(i) * b.unsqueeze(j)).sum(k)`` as ((a, i), (b, j), k)."""
    summed = _method(node, "sum")
    if summed is None or not isinstance(summed[0], ast.BinOp) or not isinstance(summed[0].op, ast.Mult):
        return None
    left, right = _method(summed[0].left, "unsqueeze"), _method(summed[0].right, "unsqueeze")
    return (left, right, summed[1]) if left is not None and right is not None else None


def _method(node: ast.AST, name: str) -> tuple[ast.expr, int] | None:
    """``x.name(number)`` or ``x.name(dim=number)`` as (x, number)."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != name:
        return None
    dim = _dim(node.args, node.keywords)
    return (node.func.value, dim) if dim is not None else None


def _dim(args: list[ast.expr], keywords: list[ast.keyword]) -> int | None:
    """The one number among arguments that name a dimension."""
    values = [*args, *(one.value for one in keywords if one.arg == "dim")]
    if len(values) != 1 or any(one.arg != "dim" for one in keywords):
        return None
    number = _number(values[0])
    return int(number) if number is not None and number == int(number) else None


def transposed(node: ast.expr) -> ast.expr | None:
    """``k`` of ``k.transpose(-2, -1)`` or ``k.mT``."""
    if isinstance(node, ast.Attribute) and node.attr == "mT":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        numbers = tuple(_number(arg) for arg in node.args)
        if node.func.attr in ("transpose", "swapaxes") and numbers in _TRANSPOSED:
            return node.func.value
        if node.func.attr == "permute" and numbers == (0, 1, 3, 2):
            return node.func.value
    return None


def _number(node: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, (int, float)) else None


def negated(mask: ast.expr) -> str:
    """The mask of what counts, where the mask of what does not is given."""
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        return enclosed(mask.operand)
    if isinstance(mask, ast.Compare) and len(mask.ops) == 1 and isinstance(mask.ops[0], (ast.Eq, ast.NotEq)):
        other = ast.NotEq() if isinstance(mask.ops[0], ast.Eq) else ast.Eq()
        return f"({ast.unparse(ast.Compare(mask.left, [other], mask.comparators))})"
    return f"~{enclosed(mask)}"


def enclosed(node: ast.expr) -> str:
    """An expression's source, in brackets unless it binds tightly."""
    text = ast.unparse(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)) else f"({text})"
