"""One expression over numbers, as one over arrays of them: same operations, same order, same rounding."""

from __future__ import annotations

import ast
from collections.abc import Callable

from unstall.optimize.source.errors import AnalysisRefused

# Operations of which NumPy's result for float64 and int64 is Python's, bit for bit. The trigonometric ones are not.
_BINARY = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod,
    ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift,
)  # fmt: skip
_TO_INTEGER = {"int": "", "math.trunc": "", "round": "rint", "math.floor": "floor", "math.ceil": "ceil"}
"""NumPy's rounding before the conversion to whole numbers, which itself cuts off as ``int`` does."""
_PLAIN = {"int", "float", "abs", "min", "max", "round", "len", "math.sqrt", "math.floor", "math.ceil"}
_SAME = {"math.sqrt": "sqrt", "math.fabs": "fabs"}


class Expressions:
    """Translates expressions. ``names`` maps a name of the loop to the one that holds its array now."""

    def __init__(
        self,
        numpy: str,
        names: dict[str, str],
        load: Callable[[ast.expr], ast.expr | None],
        function: Callable[[str], str | None],
        variables: frozenset[str] = frozenset(),
        resolve: Callable[[str], str] = str,
    ):
        self.numpy = numpy
        self.names = names
        self.load = load
        """The array for an expression that reads a cell, or None when it reads none."""
        self.resolve = resolve
        """From a function's name as spelled to its qualified name."""
        self.variables = variables
        """The loop's own variables."""
        self.function = function
        """The name of the array form of a function, or None when it has none."""

    def varies(self, node: ast.expr) -> bool:
        """Whether an expression has another value in each turn."""
        return any(
            isinstance(inner, ast.Name) and (inner.id in self.names or inner.id in self.variables)
            for inner in ast.walk(node)
        )

    def __call__(self, node: ast.expr) -> ast.expr:
        """The expression over arrays. Raises AnalysisRefused."""
        loaded = self.load(node)
        if loaded is not None:
            return loaded
        if not self.varies(node) and not any(isinstance(inner, (ast.Call, ast.Await)) for inner in ast.walk(node)):
            return node
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise _cannot(node, "has no equal on arrays")
        return method(node)

    def condition(self, node: ast.expr) -> ast.expr:
        """A condition, as an array of booleans (or one boolean)."""
        if isinstance(node, (ast.Compare, ast.BoolOp)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return self(node)
        if self.varies(node):
            return self._numpy("not_equal", [self(node), ast.Constant(0)])
        return node

    # ------------------------------------------------------------------ by kind of node

    def _name(self, node: ast.Name) -> ast.expr:
        return ast.Name(self.names[node.id], ast.Load()) if node.id in self.names else node

    def _tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple([self(element) for element in node.elts], ast.Load())

    def _binop(self, node: ast.BinOp) -> ast.expr:
        if not isinstance(node.op, _BINARY):
            raise _cannot(node, "may round differently on arrays")
        return ast.BinOp(self(node.left), node.op, self(node.right))

    def _unaryop(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return self._numpy("logical_not", [self.condition(node.operand)])
        return ast.UnaryOp(node.op, self(node.operand))

    def _compare(self, node: ast.Compare) -> ast.expr:
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            if not self.varies(node):
                return node
            raise _cannot(node, "asks for identity or membership")
        operands = [self(operand) for operand in (node.left, *node.comparators)]
        parts: list[ast.expr] = [
            ast.Compare(left, [op], [right]) for left, op, right in zip(operands, node.ops, operands[1:])
        ]
        return self._fold("logical_and", parts)

    def _boolop(self, node: ast.BoolOp) -> ast.expr:
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return self._fold(name, [self.condition(value) for value in node.values])

    def _ifexp(self, node: ast.IfExp) -> ast.expr:
        return self._numpy("where", [self.condition(node.test), self(node.body), self(node.orelse)])

    def _call(self, node: ast.Call) -> ast.expr:
        name = self.resolve(ast.unparse(node.func))
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
            raise _cannot(node, "passes arguments by name")
        if not self.varies(node) and name in _PLAIN:
            return node
        args = [self(arg) for arg in node.args]
        if name in ("min", "max") and len(args) > 1:
            return self._fold("minimum" if name == "min" else "maximum", args)
        if name == "abs" and len(args) == 1:
            return ast.Call(ast.Name("abs", ast.Load()), args, [])
        if name in _TO_INTEGER and len(args) == 1:
            rounding = _TO_INTEGER[name]
            rounded = self._numpy(rounding, args) if rounding else args[0]
            return ast.Call(ast.Attribute(rounded, "astype", ast.Load()), [self._attribute_of("int64")], [])
        if name == "float" and len(args) == 1:
            return self._numpy("float64", args)
        if name in _SAME and len(args) == 1:
            return self._numpy(_SAME[name], args)
        converted = self.function(name)
        if converted is None:
            raise _cannot(node, f"calls {name}, which has no array form")
        return ast.Call(ast.Name(converted, ast.Load()), args, [])

    def _subscript(self, node: ast.Subscript) -> ast.expr:
        """A look-up in a table: ``table[i]`` with a table that does not change."""
        if self.varies(node.value) or not self.varies(node.slice) or isinstance(node.slice, (ast.Slice, ast.Tuple)):
            raise _cannot(node, "reads another turn's cell")
        return self._numpy("take", [node.value, self(node.slice)])

    # ------------------------------------------------------------------ building

    def _fold(self, name: str, parts: list[ast.expr]) -> ast.expr:
        result = parts[0]
        for part in parts[1:]:
            result = self._numpy(name, [result, part])
        return result

    def _numpy(self, name: str, args: list[ast.expr]) -> ast.Call:
        return ast.Call(self._attribute_of(name), args, [])

    def _attribute_of(self, name: str) -> ast.expr:
        return ast.Attribute(ast.Name(self.numpy, ast.Load()), name, ast.Load())


def _cannot(node: ast.AST, reason: str) -> AnalysisRefused:
    shown = ast.unparse(node)
    return AnalysisRefused(f"line {getattr(node, 'lineno', '?')}: {shown[:60]} {reason}")
