"""The part of Python that a loop over numbers is written in, which Numba compiles: everything else is refused.

What the names stand for is not known here: the compiled loop looks at its arguments each time, see
:mod:`unstall.optimize.runtime.compiled`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.compiling.strict_zips import strict_argument, zipped_strictly
from unstall.optimize.source.effects import named
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted, method_name, root
from unstall.optimize.source.purity import is_of_comprehension

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
        "math": "sqrt exp log log2 log10 sin cos tan atan atan2 tanh floor ceil fabs isnan isinf",
    }
)
_CONSTANTS = named({"math": "pi e inf"})
_SIZED = ("builtins.range", "builtins.list", "builtins.sorted")
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
    if isinstance(node, cst.Expr) and not is_append(node.value):
        return "does something else than to compute"
    if isinstance(node, cst.Arg) and strict_argument(module, module.parent(node)) is node:
        return _refused_zip(module, node)
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
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Power):
        return _refused_power(node.right)
    if isinstance(node, cst.Call):
        return _refused_call(module, node)
    return None


def _refused_power(exponent: cst.BaseExpression) -> str | None:
    """Powers are multiplied out, which rounds otherwise than Python does, but for a square."""
    is_square = isinstance(exponent, cst.Integer) and exponent.value == "2"
    return None if is_square or isinstance(exponent, cst.Float) else "has a power"


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


def is_append(node: cst.CSTNode | None) -> bool:
    """Whether it is a call that appends to a list."""
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS


def is_listed(node: cst.CSTNode) -> bool:
    """Whether it is a call that makes a list of an array or a tensor: ``x.tolist()``."""
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == TO_LIST


def _refused_call(module: SourceModule, call: cst.Call) -> str | None:
    name = module.name(call)
    if name == "builtins.round" and len(call.args) > 1:
        return "rounds to decimal places"
    if name in _FUNCTIONS or helper(module, call) is not None:
        return None
    method = method_name(call)
    if method in _METHODS or (method in (TO_LIST, TO_NUMBER) and not call.args):
        return None
    return f"calls {dotted(call.func) or 'what it computed'}"


def _refused_zip(module: SourceModule, said: cst.Arg) -> str | None:
    """Why the lengths of what is zipped strictly cannot be compared; None where they can, or need not be."""
    if dotted(said.value) == "False":
        return None
    zipped = module.parent(said)
    assert isinstance(zipped, cst.Call)
    loop = module.enclosing(zipped, cst.For)
    if loop is None or zipped_strictly(module, loop) is not zipped:
        return "zips strictly what no loop goes over"
    values = [arg.value for arg in zipped.args if arg is not said]
    if not all(_is_sized(module, value) for value in values):
        return "zips strictly what may have no length"
    of = {root(node) for value in values for node in module.inside(value)} - {""}
    grows = any(is_append(node) and root(node) in of for node in module.inside(loop.body))
    return "goes over what it appends to" if grows else None


def _is_sized(module: SourceModule, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        return module.name(value) in _SIZED or is_listed(value)
    return isinstance(value, (cst.Name, cst.Attribute, cst.Subscript, cst.List, cst.Tuple, cst.ListComp))


def helper(module: SourceModule, call: cst.Call) -> cst.FunctionDef | None:
    """The function or method of the file that is called, if it is one that can be read like a function of its own."""
    function = _called(module, call.func)
    if function is None or function.asynchronous:
        return None
    params = function.params
    is_positional = not (params.kwonly_params or params.star_kwarg or isinstance(params.star_arg, cst.Param))
    is_static = [module.name(decorator.decorator) for decorator in function.decorators] == ["builtins.staticmethod"]
    return function if is_positional and (is_static or not function.decorators) else None


def _called(module: SourceModule, func: cst.BaseExpression) -> cst.FunctionDef | None:
    """The only function of the top level, or method of the class around it, that a name or ``self.name`` can be."""
    if isinstance(func, cst.Name):
        known = len(module.global_scope[func.value]) == 1
        return module.top_level(cst.FunctionDef, func.value) if known else None
    cls = module.enclosing(func, cst.ClassDef)
    if not isinstance(func, cst.Attribute) or cls is None or dotted(func.value) not in ("self", cls.name.value):
        return None
    named = [function for function in module.all(cst.FunctionDef) if function.name.value == func.attr.value]
    return named[0] if len(named) == 1 and named[0] in cls.body.body else None


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
        if isinstance(above, cst.Attribute) and above.value is inner and _is_known(module, above):
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


def _is_known(module: SourceModule, called: cst.Attribute) -> bool:
    """Whether it is a function of a module, or a method, that is compiled with the loop which calls it."""
    call = module.parent(called)
    if not isinstance(call, cst.Call) or call.func is not called:
        return False
    return module.name(call) in _FUNCTIONS or helper(module, call) is not None
