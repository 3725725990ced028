"""One expression over numbers, as one over arrays of them: same operations, same order, same rounding."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from unstall.optimize.source.effects import named
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, walk
from unstall.optimize.vectorize.syntax import call_of, indices, names_in, sign, source

# Operations of which NumPy's result for float64 and int64 is Python's, bit for bit. The trigonometric ones are not.
_BINARY = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>")
_DECISIONS = (cst.Comparison, cst.BooleanOperation)
_TO_INTEGER = {
    "builtins.int": "", "math.trunc": "", "builtins.round": "rint", "math.floor": "floor", "math.ceil": "ceil",
}  # fmt: skip
"""NumPy's rounding before the conversion to whole numbers, which itself cuts off as ``int`` does."""
_PLAIN = named({"builtins": "int float abs min max round len", "math": "sqrt floor ceil"})
_SAME = {"math.sqrt": "sqrt", "math.fabs": "fabs", "builtins.float": "float64"}
_EXTREMES = {"builtins.min": "minimum", "builtins.max": "maximum"}


class Expressions:
    """Translates expressions. ``names`` maps a name of the loop to the one that holds its array now."""

    def __init__(
        self,
        module: SourceModule,
        numpy: str,
        names: dict[str, str],
        load: Callable[[cst.BaseExpression], cst.BaseExpression | None],
        function: Callable[[str], str | None],
        variables: frozenset[str] = frozenset(),
    ):
        self.module, self.numpy, self.names = module, numpy, names
        self.load = load
        """The array for an expression that reads a cell, or None when it reads none."""
        self.variables = variables
        """The loop's own variables."""
        self.function = function
        """The name of the array form of a function, or None when it has none."""

    def varies(self, node: cst.CSTNode) -> bool:
        """Whether an expression has another value in each turn."""
        return any(name in self.names or name in self.variables for name in names_in(node))

    def __call__(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The expression over arrays. Raises AnalysisRefused."""
        loaded = self.load(node)
        if loaded is not None:
            return loaded
        if not self.varies(node) and not any(isinstance(inner, (cst.Call, cst.Await)) for inner in walk(node)):
            return node
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.cannot(node, "has no equal on arrays")
        return method(node)  # type: ignore[no-any-return]

    def augmented(self, step: cst.AugAssign) -> cst.BaseExpression:
        """The value that ``x += y`` and its like give. Raises AnalysisRefused."""
        operator = sign(step.operator)[:-1]
        if self.varies(step) and operator not in _BINARY:
            raise self.cannot(step.target, f"{operator}= may round differently on arrays")
        return cst.parse_expression(f"{source(self(step.target))} {operator} ({source(self(step.value))})")

    def condition(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A condition, as an array of booleans (or one boolean)."""
        is_not = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)
        if is_not or isinstance(node, _DECISIONS):
            return self(node)
        return self._numpy("not_equal", self(node), cst.Integer("0")) if self.varies(node) else node

    # ------------------------------------------------------------------ by kind of node

    def _name(self, node: cst.Name) -> cst.BaseExpression:
        return cst.Name(self.names[node.value]) if node.value in self.names else node

    def _tuple(self, node: cst.Tuple) -> cst.BaseExpression:
        return node.with_changes(elements=[part.with_changes(value=self(part.value)) for part in node.elements])

    def _binaryoperation(self, node: cst.BinaryOperation) -> cst.BaseExpression:
        if sign(node.operator) not in _BINARY:
            raise self.cannot(node, "may round differently on arrays")
        return node.with_changes(left=self(node.left), right=self(node.right))

    def _unaryoperation(self, node: cst.UnaryOperation) -> cst.BaseExpression:
        if isinstance(node.operator, cst.Not):
            return self._numpy("logical_not", self.condition(node.expression))
        return node.with_changes(expression=self(node.expression))

    def _comparison(self, node: cst.Comparison) -> cst.BaseExpression:
        if any(isinstance(part.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for part in node.comparisons):
            if not self.varies(node):
                return node
            raise self.cannot(node, "asks for identity or membership")
        left, parts = self(node.left), list[cst.BaseExpression]()
        for part in node.comparisons:
            right = self(part.comparator)
            parts.append(cst.Comparison(left, [part.with_changes(comparator=right)]))
            left = right
        return self._fold("logical_and", parts)

    def _booleanoperation(self, node: cst.BooleanOperation) -> cst.BaseExpression:
        name = "logical_and" if isinstance(node.operator, cst.And) else "logical_or"
        return self._numpy(name, self.condition(node.left), self.condition(node.right))

    def _ifexp(self, node: cst.IfExp) -> cst.BaseExpression:
        return self._numpy("where", self.condition(node.test), self(node.body), self(node.orelse))

    def _call(self, node: cst.Call) -> cst.BaseExpression:
        name = self.module.name(node)
        if any(arg.keyword is not None or arg.star for arg in node.args):
            raise self.cannot(node, "passes arguments by name")
        if not self.varies(node) and name in _PLAIN:
            return node
        args = [self(arg.value) for arg in node.args]
        if name in _EXTREMES and len(args) > 1:
            return self._fold(_EXTREMES[name], args)
        if name == "builtins.abs" and len(args) == 1:
            return call_of("abs", *args)
        if name in _TO_INTEGER and len(args) == 1:
            rounded = self._numpy(_TO_INTEGER[name], *args) if _TO_INTEGER[name] else args[0]
            return cst.parse_expression(f"({source(rounded)}).astype({self.numpy}.int64)")
        if name in _SAME and len(args) == 1:
            return self._numpy(_SAME[name], *args)
        converted = self.function(name)
        if converted is None:
            raise self.cannot(node, f"calls {source(node.func)}, which has no array form")
        return call_of(converted, *args)

    def _subscript(self, node: cst.Subscript) -> cst.BaseExpression:
        """A look-up in a table: ``table[i]`` with a table that does not change."""
        first, *others = indices(node)
        if others or isinstance(first, cst.Slice) or self.varies(node.value) or not self.varies(first):
            raise self.cannot(node, "reads another turn's cell")
        return self._numpy("take", node.value, self(first))

    # ------------------------------------------------------------------ building

    def _fold(self, name: str, parts: list[cst.BaseExpression]) -> cst.BaseExpression:
        result = parts[0]
        for part in parts[1:]:
            result = self._numpy(name, result, part)
        return result

    def _numpy(self, name: str, *args: cst.BaseExpression) -> cst.BaseExpression:
        return call_of(f"{self.numpy}.{name}", *args)

    def cannot(self, node: cst.CSTNode, reason: str) -> AnalysisRefused:
        """The error that says why an expression has no equal on arrays."""
        return AnalysisRefused(f"line {self.module.first_line(node)}: {source(node)[:60]} {reason}")
