"""Attention written by hand, softmax(q kᵀ · scale + mask) v, found in a function and given to torch's fused operator.

The formula may be spread over several assignments. It is followed back from the product with ``v``; what it passes
through, the scores and the weights, must be read by nothing else, because the fused operator never makes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.attention import forms
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.purity import names

_LOAD, _STORE = ExpressionContext.LOAD, ExpressionContext.STORE


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
    replacement: cst.SimpleStatementLine
    """The statement in its place."""
    unneeded: tuple[cst.CSTNode, ...]
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

    v: cst.BaseExpression
    q: cst.BaseExpression | None = None
    k: cst.BaseExpression | None = None
    scales: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    """True where a key counts."""
    bias: str | None = None
    condition: str | None = None
    """Under which the mask holds."""
    dropout: str | None = None
    moved: tuple[tuple[cst.BaseExpression, int], ...] = ()
    """Expressions that move to the result's statement, and the statement they come from."""
    passed: frozenset[int] = field(default_factory=frozenset)
    """Statements that were passed through."""

    def with_moved(self, *expressions: cst.BaseExpression, at: int, **changes: Any) -> _Parts:
        """The parts with more expressions that move, and other changes."""
        return replace(self, moved=(*self.moved, *((expression, at) for expression in expressions)), **changes)


def find(module: SourceModule) -> list[Attention]:
    """All attention in a module's functions and methods that can be written with the fused operator."""
    attentions = []
    for function in module.all(cst.FunctionDef):
        around = module.enclosing(function, cst.ClassDef, cst.FunctionDef)
        if isinstance(around, cst.FunctionDef) or not isinstance(function.body, cst.IndentedBlock):
            continue
        reader = _FormulaReader(module, function)
        for index in range(len(reader.body)):
            try:
                attention = reader.attention(index, around.name.value if isinstance(around, cst.ClassDef) else "")
            except _NoAttention:
                continue
            if attention is not None:
                attentions.append(attention)
    return attentions


class _FormulaReader:
    """Follows the formula back through one function's statements."""

    def __init__(self, module: SourceModule, function: cst.FunctionDef):
        self.module, self.function, self.body = module, function, list(function.body.body)

    def attention(self, at: int, cls: str) -> Attention | None:
        """The attention whose result a statement makes. Raises _NoAttention."""
        line = self.body[at]
        small = _alone(line)
        if not isinstance(small, (cst.Assign, cst.Return)) or small.value is None:
            return None
        for node in self.module.inside(small.value):
            pair = forms.weighted_mean(self.module, node)
            parts = self.weights(pair[0], at, _Parts(v=pair[1])) if pair is not None else None
            if parts is None:
                continue
            self.check(parts, at)
            fused: Any = line.deep_replace(node, cst.parse_expression(_call(self.module, parts)))
            unneeded = tuple(self.body[index] for index in sorted(parts.passed))
            spread = forms.is_spread(self.module, node)
            return Attention(self.function, cls, line, fused, unneeded, spread)  # type: ignore[arg-type]
        return None

    def weights(self, node: cst.BaseExpression, at: int, parts: _Parts) -> _Parts | None:
        """Softmax of scores over the keys, with dropout or without."""
        if isinstance(node, cst.Name):
            assignment = self.assigned(node.value, at)
            if assignment is None or assignment[2] is not None:
                return None
            return self.weights(assignment[1], assignment[0], replace(parts, passed=parts.passed | {assignment[0]}))
        name = dotted(node.func) if isinstance(node, cst.Call) and len(node.args) == 1 else ""
        if name.startswith("self.") and "drop" in name.rpartition(".")[2] and node.args[0].keyword is None:  # type: ignore[attr-defined]
            with_dropout = replace(parts, dropout=f"{name}.p if self.training else 0.0")
            return self.weights(node.args[0].value, at, with_dropout)  # type: ignore[attr-defined]
        scores = forms.softmaxed(self.module, node)
        return self.scores(scores, at, parts) if scores is not None else None

    def scores(self, node: cst.BaseExpression, at: int, parts: _Parts) -> _Parts | None:
        """Products of queries and keys, scaled and masked."""
        product = forms.products(self.module, node)
        if product is not None:
            return parts.with_moved(*product, at=at, q=product[0], k=product[1])
        if isinstance(node, cst.Name):
            assignment = self.assigned(node.value, at)
            if assignment is None:
                return None
            index, value, condition = assignment
            if condition is not None:
                masked = forms.masked(self.module, value)
                if parts.condition or parts.masks or parts.bias or masked is None or dotted(masked[0]) != node.value:
                    return None
                parts = replace(parts, condition=condition)
            return self.scores(value, index, replace(parts, passed=parts.passed | {index}))
        return self._masked(node, at, parts) or self._scaled(node, at, parts)

    def _masked(self, node: cst.BaseExpression, at: int, parts: _Parts) -> _Parts | None:
        """Scores of which some keys do not count."""
        masked = forms.masked(self.module, node)
        if masked is None or parts.bias is not None or (parts.condition and parts.masks):
            return None
        scores, mask, counting = masked
        return self.scores(scores, at, parts.with_moved(mask, at=at, masks=(*parts.masks, counting)))

    def _scaled(self, node: cst.BaseExpression, at: int, parts: _Parts) -> _Parts | None:
        """``scores / number``, ``scores * number``, ``scores + bias``; a bias comes after the scale."""
        if not isinstance(node, cst.BinaryOperation):
            return None
        left, right, operator = node.left, node.right, node.operator
        if isinstance(operator, cst.Divide):
            scale = f"1 / {forms.enclosed(self.module, right)}"
            return self.scores(left, at, parts.with_moved(right, at=at, scales=(*parts.scales, scale)))
        for scores, operand in ((left, right), (right, left)):
            if isinstance(operator, cst.Multiply):
                scales = (*parts.scales, forms.enclosed(self.module, operand))
                extended = parts.with_moved(operand, at=at, scales=scales)
            elif isinstance(operator, cst.Add) and not (parts.bias or parts.masks or parts.scales):
                extended = parts.with_moved(operand, at=at, bias=self.module.code(operand))
            else:
                return None
            complete = self.scores(scores, at, extended)
            if complete is not None:
                return complete
        return None

    def assigned(self, name: str, before: int) -> tuple[int, cst.BaseExpression, str | None] | None:
        """(statement, value, condition) of the last assignment to a name; None where it is not plain."""
        index = next((at for at in range(before - 1, -1, -1) if name in self._set([self.body[at]])), None)
        if index is None:
            return None
        line: Any = self.body[index]
        condition = None
        if isinstance(line, cst.If) and line.orelse is None and len(line.body.body) == 1:
            condition, line = self.module.code(line.test), line.body.body[0]
        small = _alone(line)
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return None
        return (index, small.value, condition) if isinstance(small.targets[0].target, cst.Name) else None

    def check(self, parts: _Parts, at: int) -> None:
        """What was passed through is read nowhere else; what moves still means the same. Raises _NoAttention."""
        passed = [self.body[index] for index in parts.passed]
        removed = self._set(passed)
        inside = {node for line in (*passed, self.body[at]) for node in self.module.inside(line)}
        if any(node not in inside for node in self._reads(self.function, removed)):
            raise _NoAttention("the scores or the weights are used")
        if len(self._reads(self.body[at], removed)) > 1:
            raise _NoAttention("the weights are used twice")
        for expression, index in parts.moved:
            needed = {node.value for node in self.module.inside(expression) if isinstance(node, cst.Name)}
            anew = needed & (removed | self._set(self.body[index + 1 : at]))
            if anew:
                raise _NoAttention(f"{min(anew)} is set again in between")

    def _set(self, lines: Iterable[cst.CSTNode]) -> set[str]:
        """The names that statements set."""
        return set(names(self.module, lines, _STORE))

    def _reads(self, node: cst.CSTNode, wanted: set[str]) -> list[cst.CSTNode]:
        """Where these names are read."""
        return [
            inner for inner in self.module.inside(node)
            if isinstance(inner, cst.Name) and inner.value in wanted and self.module.context(inner) is _LOAD
        ]  # fmt: skip


def _alone(line: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The statement that has a line to itself."""
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def _call(module: SourceModule, parts: _Parts) -> str:
    """The fused operator with the parts of the formula."""
    assert parts.q is not None and parts.k is not None
    args = [module.code(parts.q), module.code(parts.k), module.code(parts.v)]
    mask = parts.bias or " & ".join(parts.masks)
    if mask:
        args.append(f"attn_mask={mask} if {parts.condition} else None" if parts.condition else f"attn_mask={mask}")
    if parts.dropout:
        args.append(f"dropout_p={parts.dropout}")
    args.append(f"scale={' * '.join(parts.scales) or '1.0'}")
    functional = module.alias("torch.nn.functional") or "torch.nn.functional"
    return f"{functional}.scaled_dot_product_attention({', '.join(args)})"
