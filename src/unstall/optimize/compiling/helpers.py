"""The functions and methods that a compiled loop calls: they are compiled with it, if they only compute."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.compiling.language import helper, outer_references, refuse_other_than_numbers
from unstall.optimize.compiling.strict_zips import strict_argument
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, root
from unstall.optimize.source.purity import is_stored, names


def helpers(module: SourceModule, node: cst.CSTNode) -> list[cst.FunctionDef]:
    """The functions that a statement calls, and those that they call. Raises AnalysisRefused for one that does more."""
    called: list[cst.FunctionDef] = []
    waiting: list[cst.CSTNode] = [node]
    while waiting:
        for call in (inner for inner in module.inside(waiting.pop()) if isinstance(inner, cst.Call)):
            function = helper(module, call)
            if function is not None and function not in called:
                _refuse_helper(module, function)
                called.append(function)
                waiting.append(function)
    return called


def _refuse_helper(module: SourceModule, function: cst.FunctionDef) -> None:
    body = [line for line in function.body.body if not _is_docstring(line)]
    if is_method(module, function) and any(
        param.default and not _is_literal(param.default) for param in function.params.params
    ):
        raise AnalysisRefused(f"{function.name.value} has a default that is no number")
    own = {param.name.value for param in function.params.params if not is_bound(function, param)}
    for line in body:
        refuse_other_than_numbers(module, line, returns=True)
    own |= {*names(module, body, ExpressionContext.STORE)}
    for line in body:
        for read in outer_references(module, line, own):
            if not isinstance(read, cst.Name) or not _is_constant(module, read):
                raise AnalysisRefused(f"{function.name.value} reads {module.code(read)} besides its arguments")
        for node in module.inside(line):
            if strict_argument(module, node) is not None:
                raise AnalysisRefused(f"{function.name.value} says zip(strict=...), which the compiler does not know")
            if (
                isinstance(node, cst.Subscript)
                and is_stored(module, node)
                and root(node) in {param.name.value for param in function.params.params}
            ):
                raise AnalysisRefused(f"{function.name.value} changes what it is given")


def is_method(module: SourceModule, function: cst.FunctionDef) -> bool:
    """Whether it stands in a class: the compiled loop gets a copy of it that does not."""
    return module.enclosing(function, cst.ClassDef, cst.FunctionDef) is not None


def is_bound(function: cst.FunctionDef, param: cst.Param) -> bool:
    """Whether a parameter is the object whose method it is."""
    return param is function.params.params[0] and param.name.value == "self"


def _is_literal(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) or (
        isinstance(node, cst.Name) and node.value in ("True", "False")
    )


def _is_docstring(line: cst.CSTNode) -> bool:
    return (
        isinstance(line, cst.SimpleStatementLine)
        and isinstance(line.body[0], cst.Expr)
        and isinstance(line.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _is_constant(module: SourceModule, node: cst.Name) -> bool:
    """Whether a name of the top level is a number that is bound once: compiled code takes it for good."""
    assignments = list(module.global_scope[node.value])
    if len(assignments) != 1:
        return False
    above = module.parent(getattr(assignments[0], "node", node))
    assign = module.parent(above) if above is not None else None
    return isinstance(assign, cst.Assign) and isinstance(assign.value, (cst.Integer, cst.Float))
