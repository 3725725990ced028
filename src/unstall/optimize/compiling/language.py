"""The part of Python that a loop over numbers is written in, which Numba compiles: everything else is refused.

What the names stand for is not known here: the compiled loop looks at its arguments each time, see
:mod:`unstall.optimize.runtime.compiled`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.effects import named
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted, root

_STATEMENTS = (
    cst.For, cst.While, cst.If, cst.Else, cst.IndentedBlock, cst.SimpleStatementLine, cst.SimpleStatementSuite,
    cst.Assign, cst.AssignTarget, cst.AugAssign, cst.Break, cst.Continue, cst.Pass, cst.Expr, cst.Return,
)  # fmt: skip
_EXPRESSIONS = (
    cst.Name, cst.Integer, cst.Float, cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation, cst.Comparison,
    cst.ComparisonTarget, cst.IfExp, cst.Tuple, cst.List, cst.Element, cst.Subscript, cst.SubscriptElement, cst.Index,
    cst.Slice, cst.Call, cst.Arg, cst.Attribute, cst.ListComp, cst.GeneratorExp, cst.CompFor, cst.CompIf,
    cst.BaseBinaryOp, cst.BaseUnaryOp, cst.BaseBooleanOp, cst.BaseCompOp, cst.BaseAugOp,
)  # fmt: skip
_REFUSED = (cst.Is, cst.IsNot, cst.MatrixMultiply, cst.MatrixMultiplyAssign)
_LAYOUT = (
    cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline, cst.Comment, cst.Comma,
    cst.Colon, cst.Semicolon, cst.AssignEqual, cst.Dot, cst.LeftParen, cst.RightParen, cst.LeftSquareBracket,
    cst.RightSquareBracket,
)  # fmt: skip

_FUNCTIONS = named(
    {
        "builtins": "range len enumerate zip min max abs int float bool round sum list sorted reversed all any",
        "math": "sqrt exp log log2 log10 sin cos tan atan atan2 tanh floor ceil fabs hypot isnan isinf",
    }
)
_CONSTANTS = named({"math": "pi e inf"})
_METHODS = ("append",)
TO_LIST = "tolist"
TO_NUMBER = "item"


def refuse_other_than_numbers(module: SourceModule, node: cst.CSTNode, *, returns: bool) -> None:
    """Raise AnalysisRefused where a statement does something that is not in this part of Python.

    ``returns``: whether it may leave the function.
    """
    for inner in module.inside(node):
        reason = _refused(module, inner, returns)
        if reason is not None:
            raise AnalysisRefused(f"line {module.first_line(module.statement(inner))} {reason}")


def _refused(module: SourceModule, node: cst.CSTNode, returns: bool) -> str | None:
    if isinstance(node, _LAYOUT):
        return None
    if isinstance(node, _REFUSED) or not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)):
        return f"has {_described(node)}"
    if isinstance(node, cst.Return) and not returns:
        return "leaves the function"
    if isinstance(node, (cst.For, cst.While)) and node.orelse is not None:
        return "has an else after a loop"
    if isinstance(node, cst.Expr) and not _appends(node.value):
        return "does something else than to compute"
    if isinstance(node, (cst.CompFor, cst.Arg)) and (
        getattr(node, "asynchronous", None) or getattr(node, "star", "") or getattr(node, "keyword", None)
    ):
        return "passes arguments by name or in bulk"
    if isinstance(node, cst.GeneratorExp) and module.name(above_argument(module, node)) not in _OF_ITERABLES:
        return "has a generator"
    if isinstance(node, cst.Name) and node.value in ("None", "Ellipsis") and not _is_returned(module, node):
        return "has None"
    if isinstance(node, cst.Attribute) and module.context(node) is not ExpressionContext.LOAD:
        return "sets an attribute"
    if isinstance(node, cst.Call):
        return _refused_call(module, node)
    return None


_OF_ITERABLES = ("builtins.all", "builtins.any", "builtins.sum", "builtins.min", "builtins.max", "builtins.list")


def above_argument(module: SourceModule, node: cst.CSTNode) -> cst.CSTNode:
    """The call that a node is an argument of; the node itself where it is none."""
    argument = module.parent(node)
    call = module.parent(argument) if isinstance(argument, cst.Arg) else None
    return call if isinstance(call, cst.Call) else node


def _is_returned(module: SourceModule, node: cst.CSTNode) -> bool:
    return isinstance(module.parent(node), cst.Return)


def _described(node: cst.CSTNode) -> str:
    names = {"SimpleString": "a string", "FormattedString": "a string", "Dict": "a dictionary", "Set": "a set"}
    return names.get(type(node).__name__, f"{type(node).__name__}, which is about more than numbers")


def _appends(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS


def _refused_call(module: SourceModule, call: cst.Call) -> str | None:
    name = module.name(call)
    if name in _FUNCTIONS or helper(module, call) is not None:
        return None
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if method in _METHODS or (method in (TO_LIST, TO_NUMBER) and not call.args):
        return None
    return f"calls {dotted(call.func) or 'what it computed'}"


def helper(module: SourceModule, call: cst.Call) -> cst.FunctionDef | None:
    """The function of the file's top level that is called, if it is one that only computes with numbers."""
    if not isinstance(call.func, cst.Name):
        return None
    function = module.top_level(cst.FunctionDef, call.func.value)
    if function is None or len(module.global_scope[call.func.value]) != 1:
        return None
    params = function.params
    plain = not (params.kwonly_params or params.star_kwarg or isinstance(params.star_arg, cst.Param))
    if function.decorators or function.asynchronous or not plain:
        return None
    return function


def helpers(module: SourceModule, node: cst.CSTNode) -> list[cst.FunctionDef]:
    """The functions that a statement calls, and those that they call. Raises AnalysisRefused for one that does more."""
    found: list[cst.FunctionDef] = []
    waiting: list[cst.CSTNode] = [node]
    while waiting:
        for call in (inner for inner in module.inside(waiting.pop()) if isinstance(inner, cst.Call)):
            function = helper(module, call)
            if function is not None and function not in found:
                _refuse_helper(module, function)
                found.append(function)
                waiting.append(function)
    return found


def _refuse_helper(module: SourceModule, function: cst.FunctionDef) -> None:
    body = [line for line in function.body.body if not _is_docstring(line)]
    own = {param.name.value for param in function.params.params}
    for line in body:
        refuse_other_than_numbers(module, line, returns=True)
        own |= {
            node.value
            for node in module.inside(line)
            if isinstance(node, cst.Name) and module.context(node) is ExpressionContext.STORE
        }
    for line in body:
        for read in outer_references(module, line, own):
            if not isinstance(read, cst.Name) or not _is_constant(module, read):
                raise AnalysisRefused(f"{function.name.value} reads {module.code(read)} besides its arguments")
        for node in module.inside(line):
            if (
                isinstance(node, cst.Subscript)
                and module.context(node) is ExpressionContext.STORE
                and root(node) in {param.name.value for param in function.params.params}
            ):
                raise AnalysisRefused(f"{function.name.value} changes what it is given")


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


def outer_references(module: SourceModule, node: cst.CSTNode, own: set[str]) -> Iterator[cst.BaseExpression]:
    """The names, and attributes of names, that are read of outside: not what it calls, not those that are ``own``."""
    for inner in module.inside(node):
        above = module.parent(inner)
        if not isinstance(inner, (cst.Name, cst.Attribute)) or module.context(inner) is not ExpressionContext.LOAD:
            continue
        if isinstance(above, cst.Attribute) and above.value is inner and _is_reference(module, above):
            continue  # a part of what is read
        if isinstance(above, cst.Call) and above.func is inner:
            continue
        if isinstance(inner, cst.Attribute) and not dotted(inner):
            continue
        if root(inner) in own or is_of_comprehension(module, inner) or module.name(inner) in _CONSTANTS:
            continue
        if isinstance(inner, cst.Name) and inner.value in ("True", "False", "None"):
            continue
        yield inner


def _is_reference(module: SourceModule, node: cst.Attribute) -> bool:
    """Whether it is an attribute that is read: not a method that is called."""
    above = module.parent(node)
    return bool(dotted(node)) and not (isinstance(above, cst.Call) and above.func is node)


def is_of_comprehension(module: SourceModule, node: cst.BaseExpression) -> bool:
    """Whether a name, or what an attribute is asked of, is bound by a comprehension around it."""
    name: cst.CSTNode = node
    while isinstance(name, cst.Attribute):
        name = name.value
    if not isinstance(name, cst.Name):
        return False
    around = [outer for outer in module.ancestors(name) if isinstance(outer, (cst.ListComp, cst.GeneratorExp))]
    return any(
        isinstance(inner, cst.Name) and inner.value == name.value and module.context(inner) is ExpressionContext.STORE
        for outer in around
        for inner in module.inside(outer)
    )
