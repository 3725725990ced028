"""The parts of the syntax that turns are read by, and expressions as text."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from unstall.optimize.source.module import walk

Step = cst.BaseSmallStatement | cst.BaseCompoundStatement
_TEXTS = (cst.SimpleString, cst.ConcatenatedString, cst.BaseNumber, cst.Ellipsis)


def source(node: cst.CSTNode) -> str:
    """An expression as text in one layout, so that texts are equal where only spaces, comments or brackets differ.

    Python's own printer gives it, which also leaves out the brackets that an operation does not need.
    """
    code = cst.Module([]).code_for_node(node)
    if isinstance(node, cst.Slice):
        return ast.unparse(ast.parse(f"_[{code}]", mode="eval"))[2:-1]
    return ast.unparse(ast.parse(f"({code})", mode="eval"))


def call_of(function: str, *arguments: cst.BaseExpression) -> cst.BaseExpression:
    """A call as an expression."""
    return cst.parse_expression(f"{function}({', '.join(map(source, arguments))})")


def sign(operator: cst.CSTNode) -> str:
    """What an operator is written as, without the spaces and comments around it."""
    none = cst.SimpleWhitespace("")
    return cst.Module([]).code_for_node(operator.with_changes(whitespace_before=none, whitespace_after=none))


def steps(block: Any) -> list[Any]:
    """The statements of a block, those that share a line apart."""
    lines = (line.body if isinstance(line, cst.SimpleStatementLine) else [line] for line in block.body)
    return [step for line in lines for step in line]


def branches(decision: cst.If) -> tuple[list[Any], list[Any]]:
    """The statements of an ``if``, and those of what comes otherwise."""
    other = decision.orelse
    return steps(decision.body), steps(other.body) if isinstance(other, cst.Else) else [other] if other else []


def single_target(step: cst.CSTNode) -> cst.BaseExpression | None:
    """What an assignment assigns to, if that is one thing."""
    return step.targets[0].target if isinstance(step, cst.Assign) and len(step.targets) == 1 else None


def elements(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The parts of a tuple; of anything else, itself."""
    return [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]


def indices(node: cst.Subscript) -> list[Any]:
    """What a subscript indexes by: expressions and slices."""
    parts: list[Any] = [part.slice.value if isinstance(part.slice, cst.Index) else part.slice for part in node.slice]
    return elements(parts[0]) if len(parts) == 1 else parts


def names_in(*nodes: cst.CSTNode) -> list[str]:
    """The names in expressions, in order of appearance; those of attributes and keywords are none."""
    parts = [part for node in nodes for part in walk(node)]
    labels = {part.attr if isinstance(part, cst.Attribute) else getattr(part, "keyword", None) for part in parts}
    return list(dict.fromkeys(part.value for part in parts if isinstance(part, cst.Name) and part not in labels))


def is_text(step: Step) -> bool:
    """Whether a statement is a docstring or ``pass``."""
    return isinstance(step, cst.Pass) or (isinstance(step, cst.Expr) and isinstance(step.value, _TEXTS))
