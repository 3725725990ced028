"""Attention written by hand, softmax(q kᵀ · scale + mask) v, found in a function and given to torch's fused operator.

The formula may be spread over several assignments. It is followed back from the product with ``v``; what it passes
through, the scores and the weights, must be read by nothing else, because the fused operator never makes them.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field, replace

import libcst as cst

from unstall.optimize.attention.forms import Forms, enclosed, is_spread
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.python_ast import names as names_of


class _NoAttention(Exception):
    """The statement does not hold attention that the fused operator computes; the message says why."""


@dataclass(frozen=True)
class Attention:
    """Attention found in a function."""

    function: cst.FunctionDef
    cls: str
    """The class that it is a method of, '' for none."""
    result: cst.SimpleStatementLine
    """The statement that makes the result."""
    replacement: str
    """Source of the statement in its place."""
    unneeded: tuple[cst.SimpleStatementLine | cst.BaseCompoundStatement, ...]
    """The statements that only led to the result."""
    spread: bool = False
    """By broadcasting and sums: every product of two numbers is kept in memory first."""

    @property
    def name(self) -> str:
        """The function's name, with its class's."""
        return f"{self.cls}.{self.function.name.value}" if self.cls else self.function.name.value


@dataclass(frozen=True)
class _Parts:
    """What was gathered on the way back from the result."""

    q: ast.expr | None = None
    k: ast.expr | None = None
    v: ast.expr | None = None
    scales: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    """True where a key counts."""
    bias: str | None = None
    condition: str | None = None
    """Under which the mask holds."""
    dropout: str | None = None
    taken: tuple[tuple[ast.expr, int], ...] = ()
    """Expressions that move to the result's statement, and the statement they come from."""
    passed: frozenset[int] = field(default_factory=frozenset)
    """Statements that were passed through."""


def find(module: SourceModule) -> list[Attention]:
    """All attention in a module that can be written with the fused operator."""
    found = []
    for cls, function in _functions(module.ast):
        for index, statement in enumerate(function.body):
            try:
                attention = _in_statement(module, cls, function, index, statement)
            except _NoAttention:
                continue
            if attention is not None:
                found.append(attention)
    return found


def _functions(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    methods = [(node.name, one) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
               for one in node.body if isinstance(one, ast.FunctionDef)]  # fmt: skip
    return methods + [("", node) for node in tree.body if isinstance(node, ast.FunctionDef)]


def _in_statement(
    module: SourceModule, cls: str, function: ast.FunctionDef, index: int, statement: ast.stmt
) -> Attention | None:
    if not isinstance(statement, (ast.Assign, ast.Return)) or statement.value is None:
        return None
    reader = _Reader(function, Forms(module.resolve))
    for node in ast.walk(statement.value):
        pair = reader.forms.mixed(node)
        parts = reader.weights(pair[0], index, _Parts(v=pair[1])) if pair is not None else None
        if parts is None:
            continue
        reader.check(parts, index)
        changed = copy.deepcopy(statement)
        _Replace(ast.unparse(node), ast.parse(_call(parts, module), mode="eval").body).visit(changed)
        unneeded = [_line(module, function.body[one]) for one in sorted(parts.passed)]
        result = _line(module, statement)
        assert isinstance(result, cst.SimpleStatementLine)
        return Attention(
            module.node(function, cst.FunctionDef), cls, result, ast.unparse(changed), tuple(unneeded), is_spread(node)
        )
    return None


def _line(module: SourceModule, statement: ast.stmt) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
    """A statement that has its line to itself. Raises _NoAttention."""
    kind = cst.BaseCompoundStatement if isinstance(statement, ast.If) else cst.BaseSmallStatement
    line = module.statement(module.node(statement, kind))
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) > 1:
        raise _NoAttention("there are several statements on a line")
    return line


class _Replace(ast.NodeTransformer):
    """Puts an expression in the place of another of the same source."""

    def __init__(self, source: str, new: ast.expr):
        self.source, self.new = source, new

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.unparse(node) == self.source:
            return self.new
        result: ast.AST = self.generic_visit(node)
        return result


class _Reader:
    """Follows the formula back through one function's statements."""

    def __init__(self, function: ast.FunctionDef, forms: Forms):
        self.function, self.body, self.forms = function, function.body, forms

    def weights(self, node: ast.expr, at: int, parts: _Parts) -> _Parts | None:
        """Softmax of scores over the keys, with dropout or without."""
        if isinstance(node, ast.Name):
            made = self.assigned(node.id, at)
            if made is None or made[2] is not None:
                return None
            return self.weights(made[1], made[0], replace(parts, passed=parts.passed | {made[0]}))
        if not isinstance(node, ast.Call):
            return None
        name = ast.unparse(node.func)
        if name.startswith("self.") and "drop" in name.rpartition(".")[2] and len(node.args) == 1 and not node.keywords:
            return self.weights(node.args[0], at, replace(parts, dropout=f"{name}.p if self.training else 0.0"))
        scores = self.forms.softmaxed(node)
        return self.scores(scores, at, parts) if scores is not None else None

    def scores(self, node: ast.expr, at: int, parts: _Parts) -> _Parts | None:
        """Products of queries and keys, scaled and masked."""
        product = self.forms.products(node)
        if product is not None:
            taken = tuple((one, at) for one in product)
            return replace(parts, q=product[0], k=product[1], taken=(*parts.taken, *taken))
        if isinstance(node, ast.Name):
            made = self.assigned(node.id, at)
            if made is None:
                return None
            index, value, condition = made
            if condition is not None:
                if parts.condition or parts.masks or parts.bias or self.forms.first(value) != node.id:
                    return None
                parts = replace(parts, condition=condition)
            return self.scores(value, index, replace(parts, passed=parts.passed | {index}))
        return self._masked(node, at, parts) or self._scaled(node, at, parts)

    def _masked(self, node: ast.expr, at: int, parts: _Parts) -> _Parts | None:
        """Scores of which some keys do not count."""
        masked = self.forms.masked(node)
        if masked is None or parts.bias is not None or (parts.condition and parts.masks):
            return None
        scores, mask, kept = masked
        return self.scores(scores, at, replace(parts, masks=(*parts.masks, kept), taken=(*parts.taken, (mask, at))))

    def _scaled(self, node: ast.expr, at: int, parts: _Parts) -> _Parts | None:
        """``scores / number``, ``scores * number``, ``scores + bias``; a bias comes after the scale."""
        if not isinstance(node, ast.BinOp):
            return None
        left, right = node.left, node.right
        if isinstance(node.op, ast.Div):
            more = replace(parts, scales=(*parts.scales, f"1 / {enclosed(right)}"), taken=(*parts.taken, (right, at)))
            return self.scores(left, at, more)
        for scores, other in ((left, right), (right, left)):
            if isinstance(node.op, ast.Mult):
                more = replace(parts, scales=(*parts.scales, enclosed(other)), taken=(*parts.taken, (other, at)))
            elif isinstance(node.op, ast.Add) and parts.bias is None and not parts.masks and not parts.scales:
                more = replace(parts, bias=ast.unparse(other), taken=(*parts.taken, (other, at)))
            else:
                return None
            found = self.scores(scores, at, more)
            if found is not None:
                return found
        return None

    def assigned(self, name: str, before: int) -> tuple[int, ast.expr, str | None] | None:
        """(statement, value, condition) of the last assignment to a name; None where it is not plain."""
        for index in range(before - 1, -1, -1):
            statement = self.body[index]
            if not _sets(statement, name):
                continue
            condition = None
            if isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1:
                condition, statement = ast.unparse(statement.test), statement.body[0]
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    return index, statement.value, condition
            return None
        return None

    def check(self, parts: _Parts, at: int) -> None:
        """What was passed through is read nowhere else; what moves still means the same. Raises _NoAttention."""
        inside = {id(node) for index in parts.passed for node in ast.walk(self.body[index])}
        inside |= {id(node) for node in ast.walk(self.body[at])}
        names = {name for index in parts.passed for name in names_of([self.body[index]], ast.Store)}
        taken = {node.id for expr, _ in parts.taken for node in ast.walk(expr) if isinstance(node, ast.Name)}
        for node in ast.walk(self.function):
            if _is_read(node, names) and id(node) not in inside:
                raise _NoAttention("the scores or the weights are used")
        if names & taken:
            raise _NoAttention(f"{min(names & taken)} is set anew in between")
        for expr, index in parts.taken:
            for node in ast.walk(expr):
                if isinstance(node, ast.Name) and any(_sets(one, node.id) for one in self.body[index + 1 : at]):
                    raise _NoAttention(f"{node.id} is set anew in between")
        result = self.body[at]
        if sum(_is_read(node, names) for node in ast.walk(result)) > 1:
            raise _NoAttention("the weights are used twice")


def _call(parts: _Parts, module: SourceModule) -> str:
    """The fused operator with the parts of the formula."""
    assert parts.q is not None and parts.k is not None and parts.v is not None
    args = [ast.unparse(parts.q), ast.unparse(parts.k), ast.unparse(parts.v)]
    mask = parts.bias or " & ".join(parts.masks)
    if mask:
        args.append(f"attn_mask={mask} if {parts.condition} else None" if parts.condition else f"attn_mask={mask}")
    if parts.dropout:
        args.append(f"dropout_p={parts.dropout}")
    args.append(f"scale={' * '.join(parts.scales) or '1.0'}")
    functional = module.alias("torch.nn.functional") or "torch.nn.functional"
    return f"{functional}.scaled_dot_product_attention({', '.join(args)})"


def _sets(statement: ast.stmt, name: str) -> bool:
    return name in names_of([statement], ast.Store)


def _is_read(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
