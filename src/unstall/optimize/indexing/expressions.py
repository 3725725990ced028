"""Expressions that are written anew, from others and from source."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst


def called(function: str, *arguments: cst.BaseExpression | str) -> cst.Call:
    """``function(arguments)``; those given as source may have a keyword."""
    call = cst.ensure_type(cst.parse_expression(f"{function}({', '.join(['x'] * len(arguments))})"), cst.Call)
    written = [
        arg.with_changes(value=argument)
        if not isinstance(argument, str)
        else args(argument)[0].with_changes(comma=arg.comma)
        for arg, argument in zip(call.args, arguments)
    ]
    return call.with_changes(args=written)


def args(*sources: str) -> Sequence[cst.Arg]:
    """Arguments as they are written."""
    return cst.ensure_type(cst.parse_expression(f"f({', '.join(sources)})"), cst.Call).args


def indexed(value: cst.BaseExpression, elements: Sequence[cst.SubscriptElement]) -> cst.Subscript:
    """``value[elements]``."""
    return cst.Subscript(value, elements)


def to_type(value: cst.BaseExpression, method: str) -> cst.Call:
    """``value.method()``."""
    return cst.Call(cst.Attribute(value, cst.Name(method)))


def method(node: cst.CSTNode) -> str:
    """The name of the method that a call calls; '' where it calls none."""
    is_method = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return node.func.attr.value if is_method else ""  # type: ignore[attr-defined]
