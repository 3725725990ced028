"""A turn of a loop over torch tensors, as a function of the rows that it takes: ``x[i]`` becomes an argument ``x_i``.

What is refused would be different, or done another number of times, if it ran once for all turns: conditions on data,
random numbers, output, changes in place, calls of what is not known. ``torch.vmap`` refuses the rest as it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from unstall.optimize.source.bindings import assigned, only_names
from unstall.optimize.source.edit import keyword
from unstall.optimize.source.effects import is_in_place, may_differ, named
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted, number_of, walk
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.purity import method_of
from unstall.optimize.source.templates import Templates
from unstall.optimize.vectorize.syntax import indices, is_text, names_in, source, steps

_METHODS = named({"": (
    "abs acos all amax amin any argmax argmin asin atan bmm bool ceil chunk clamp clip contiguous cos cosh cross "
    "cummax cumprod cumsum detach diagonal diff dim div dot double eq erf exp expand expand_as expm1 flatten flip "
    "float floor fmod ge gather gt half index_select inner isfinite isinf isnan le lerp log log10 log1p log2 "
    "log_softmax logical_and logical_not logical_or logsumexp long lt masked_fill matmul max maximum mean median "
    "min minimum mm movedim mul mv narrow ne neg norm outer permute pow prod reciprocal relu remainder reshape roll "
    "round rsqrt sigmoid sign sin sinh size softmax split sqrt square squeeze std sub sum t tan tanh tile to topk "
    "transpose tril triu type_as unbind unflatten unsqueeze var view view_as where"
)})  # fmt: skip
"""Methods of tensors that compute from their arguments alone, and that vmap can do for many rows."""
_TORCH = ("torch", "torch.linalg", "torch.special", "torch.fft", "torch.nn.functional")
_STATES = named({"": (
    "save load manual_seed seed set_grad_enabled set_default_dtype set_num_threads compile tensor as_tensor from_numpy"
)})  # fmt: skip
"""Functions of torch that change its state, or make tensors of what is none."""
_OVER_ROWS = Templates(f"X[M].{name}({dim}0)" for name in ("sum", "mean") for dim in ("", "dim=", "axis="))
_BUILTINS = ("builtins.abs", "builtins.len")
_EXPRESSIONS = (
    cst.Name, cst.Attribute, cst.Subscript, cst.Tuple, cst.List, cst.BaseNumber, cst.SimpleString,
    cst.ConcatenatedString, cst.Ellipsis, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.Call,
)  # fmt: skip
_MEMBERSHIP = (cst.In, cst.NotIn, cst.Is, cst.IsNot)
_MAX_DEPTH = 3


@dataclass(frozen=True)
class Argument:
    """What a turn takes its part of: a tensor, or the values of an axis."""

    base: str
    """Source of the tensor; '' for the values of an axis."""
    dims: dict[str, int] = field(hash=False)
    """Axis → the dimension of the base that it runs over; negative from the end."""
    device: str = ""
    """For the values of an axis: source of the tensor that they are compared with."""


class Turn:
    """Reads the expressions of one loop's body; collects the arguments that they come to need."""

    def __init__(self, scope: Scope, variables: Sequence[str], rows: dict[str, tuple[str, str]]):
        """``variables``: the loops' numbers. ``rows``: name of a loop's row → (axis, source of the tensor)."""
        self.scope, self.variables = scope, variables
        self.rows = frozenset(rows)
        self.arguments = {name: Argument(base, {axis: 0}) for name, (axis, base) in rows.items()}
        self.local: set[str] = set()
        """Names that the body has set so far."""
        self.masks: set[str] = set()
        """Those of them that are comparisons."""

    def __call__(self, node: cst.BaseExpression, unreadable: Collection[str] = ()) -> cst.BaseExpression:
        """An expression of the body over the turn's arguments. Raises AnalysisRefused.

        ``unreadable``: names that other turns write.
        """
        self.scope.check(node)
        read = set(names_in(node)).intersection(unreadable)
        if read:
            raise self.scope.refused(node, f"a turn reads {', '.join(sorted(read))}")
        return node.visit(_Rows(self))  # type: ignore[return-value]

    def is_mask(self, node: cst.CSTNode) -> bool:
        """Whether an expression is surely a boolean tensor."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
            return self.is_mask(node.left) and self.is_mask(node.right)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert):
            return self.is_mask(node.expression)
        return isinstance(node, cst.Comparison) or (isinstance(node, cst.Name) and node.value in self.masks)

    def row(self, node: cst.Subscript) -> cst.BaseExpression | None:
        """``x[:, i, 2:]`` as ``x_i[:, 2:]``; None where no variable is an index. Raises AnalysisRefused."""
        base, indices = indexed(node)
        dims = dimensions(indices, self.variables)
        if not dims:
            return None
        made = self.rows | self.local
        if not isinstance(base, (cst.Name, cst.Attribute)) or not made.isdisjoint(names_in(base)):
            raise AnalysisRefused(f"{source(base)} is indexed by a loop's variable and made in the turn")
        name = self._argument(Argument(source(base), dims))
        rest = [index for index in indices if not (isinstance(index, cst.Name) and index.value in dims)]
        while rest and (is_full(rest[-1]) or (len(rest) == 1 and isinstance(rest[0], cst.Ellipsis))):
            rest.pop()
        return cst.parse_expression(f"{name}[{', '.join(map(source, rest))}]" if rest else name)

    def number(self, variable: str, other: cst.BaseExpression) -> None:
        """A loop's variable is compared with a tensor: its values become an argument. Raises AnalysisRefused."""
        if isinstance(other, cst.Name) and other.value in self.variables:
            self.arguments.setdefault(variable, Argument("", {variable: 0}))
            return
        base = indexed(other)[0] if isinstance(other, cst.Subscript) else other
        made = {*self.local, *self.variables}
        if isinstance(base, (cst.Name, cst.Attribute)) and made.isdisjoint(names_in(base)):
            of_row = self.arguments.get(source(base))
            device = of_row.base if of_row else source(base)
            self.arguments.setdefault(variable, Argument("", {variable: 0}, device))
        if variable not in self.arguments or number_of(other) is not None:
            raise AnalysisRefused(f"it computes with the number {variable}")

    def _argument(self, argument: Argument) -> str:
        for name, present in self.arguments.items():
            if (present.base, present.dims) == (argument.base, argument.dims):
                return name
        stem = argument.base.rpartition(".")[2] + "_" + "".join(argument.dims)
        name = fresh_name(stem, {*self.scope.taken, *self.arguments})
        self.arguments[name] = argument
        return name


class _Rows(cst.CSTTransformer):
    """Puts a turn's arguments in the place of rows, and products with masks in the place of boolean indices."""

    def __init__(self, turn: Turn):
        super().__init__()
        self.turn = turn
        self.made: dict[cst.CSTNode, cst.CSTNode] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Whether what is in a node is looked at; not where something else takes its place."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        made = method(node) if method is not None else None
        if made is not None:
            self.made[node] = made
        return made is None

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:  # type: ignore[override]
        """What a node becomes."""
        return self.made.get(original_node, updated_node)

    def _call(self, node: cst.Call) -> cst.BaseExpression | None:
        """``x[mask].mean(0)``: the rows that a mask selects, as a product with it."""
        holes = _OVER_ROWS.match(self.turn.scope.module, node)
        if holes is None or not self.turn.is_mask(holes["M"]):
            return None
        mask, values = (source(holes[hole].visit(self)) for hole in "MX")  # type: ignore[arg-type]
        total = f"{self.turn.scope.torch}.tensordot(({mask}).to(({values}).dtype), {values}, ({mask}).dim())"
        return cst.parse_expression(total if _last_part(node) == "sum" else f"({total} / ({mask}).sum())")

    def _subscript(self, node: cst.Subscript) -> cst.BaseExpression | None:
        """A row of a tensor."""
        if any(self.turn.is_mask(index) for index in indexed(node)[1]):
            raise AnalysisRefused(f"how many rows {source(node)} has depends on data")
        row = self.turn.row(node)
        return None if row is None else row.visit(self)  # type: ignore[return-value]

    def _name(self, node: cst.Name) -> None:
        """A loop's variable that is neither an index nor compared."""
        if node.value in self.turn.variables:
            raise AnalysisRefused(f"it computes with the number {node.value}")

    def _labelled(self, node: Any) -> Any:
        """An attribute or an argument, of which the label is no name."""
        return node.with_changes(value=node.value.visit(self))

    _attribute = _arg = _labelled

    def _comparison(self, node: cst.Comparison) -> cst.BaseExpression:
        """A comparison of a tensor with a loop's variable."""
        (target,) = node.comparisons
        left, right = self._side(node.left, target.comparator), self._side(target.comparator, node.left)
        return node.with_changes(left=left, comparisons=[target.with_changes(comparator=right)])

    def _side(self, side: cst.BaseExpression, other: cst.BaseExpression) -> Any:
        if not isinstance(side, cst.Name) or side.value not in self.turn.variables:
            return side.visit(self)
        self.turn.number(side.value, other)
        return side


class Scope:
    """The function that a loop stands in, and what it and its module say of the names that the loop calls."""

    def __init__(self, module: SourceModule, function: cst.FunctionDef, torch: str):
        self.module, self.function, self.torch = module, function, torch
        around = module.enclosing(function, cst.ClassDef, cst.FunctionDef)
        self.cls = around if isinstance(around, cst.ClassDef) else None
        self.taken = {node.value for node in module.all(cst.Name)}
        self.called: list[cst.FunctionDef] = []
        """The functions of the module that the loop calls: their lines belong to it."""

    def refused(self, node: cst.CSTNode, reason: str) -> AnalysisRefused:
        """The error that says on which line what is not done for all turns at once."""
        return AnalysisRefused(f"line {self.module.first_line(node)}: {reason}")

    def check(self, node: cst.BaseExpression, depth: int = 0) -> None:
        """Raise AnalysisRefused unless an expression only computes with tensors."""
        for inner in walk(node):
            is_known = isinstance(inner, _EXPRESSIONS) or not isinstance(inner, cst.BaseExpression)
            if not is_known or isinstance(inner, cst.Not) or getattr(inner, "star", None):
                raise self.refused(node, f"{type(inner).__name__} is not taken for all turns at once")
            if isinstance(inner, cst.Comparison) and (
                len(inner.comparisons) > 1 or isinstance(inner.comparisons[0].operator, _MEMBERSHIP)
            ):
                raise self.refused(node, f"{source(inner)} is a decision, not a tensor")
            if isinstance(inner, cst.Call):
                self._check_call(inner, depth)

    def values_of(self, node: cst.BaseExpression) -> list[cst.BaseExpression | None]:
        """What a name of the function, the module or the class is set to; None for what cannot be told."""
        if isinstance(node, cst.Name):
            return [assigned(self.module, getattr(bound, "node", node)) for bound in self.module.bindings(node)]
        within = self.cls if self.cls is not None and dotted(node).startswith("self.") else self.function
        set_there = (part for part in self.module.inside(within) if isinstance(part, cst.AssignTarget))
        return [assigned(self.module, target.target) for target in set_there if source(target.target) == source(node)]

    def _check_call(self, call: cst.Call, depth: int) -> None:
        spelled, last = source(call.func), _last_part(call)
        qualified = self.module.name(call) or f".{last}"
        head = qualified.rpartition(".")[0]
        if may_differ(qualified) or is_in_place(qualified) or keyword(call, "out") or keyword(call, "inplace"):
            raise self.refused(call, f"{spelled} draws random numbers, or changes what it is given")
        if (head in _TORCH and last not in _STATES) or qualified in _BUILTINS or self._is_layer(call.func):
            return
        function = self._definition(spelled)
        if function is not None:
            self._check_function(call, function, depth)
        elif not (isinstance(call.func, cst.Attribute) and last in _METHODS and head != "self"):
            raise self.refused(call, f"what {spelled} does is not known")

    def _is_layer(self, called: cst.BaseExpression) -> bool:
        """Whether a name is a layer or a loss of torch.nn, made in the function, the module or the class."""
        values = self.values_of(called)
        if len(values) != 1 or not isinstance(values[0], cst.Call):
            return False
        calls = [node for node in self.module.inside(values[0]) if isinstance(node, cst.Call)]
        return all(self.module.name(call).startswith("torch.nn.") and not keyword(call, "inplace") for call in calls)

    def _definition(self, spelled: str) -> cst.FunctionDef | None:
        """A function of the module, or a method of the class around the loop."""
        if not spelled.startswith("self."):
            return self.module.top_level(cst.FunctionDef, spelled)
        return method_of(self.cls, spelled.removeprefix("self.")) if self.cls is not None else None

    def _check_function(self, call: cst.Call, function: cst.FunctionDef, depth: int) -> None:
        """A function that sets names and returns, and does nothing else."""
        name = function.name.value
        if depth >= _MAX_DEPTH or function.decorators or function.asynchronous:
            raise self.refused(call, f"{name} is decorated, or calls too deep to follow")
        self.called.append(function)
        for step in steps(function.body):
            sets_names = isinstance(step, cst.Assign) and all(only_names(target.target) for target in step.targets)
            if not sets_names and not isinstance(step, cst.Return) and not is_text(step):
                raise self.refused(step, f"{name} does more than compute")
            if isinstance(step, (cst.Assign, cst.Return)) and step.value is not None:
                self.check(step.value, depth + 1)


def _last_part(call: cst.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)


def indexed(node: cst.BaseExpression) -> tuple[cst.BaseExpression, list[Any]]:
    """What is indexed, and by what: ``x[i][j]`` as ``x[i, j]``, unless an index before the last is no plain one."""
    found: list[Any] = []
    while isinstance(node, cst.Subscript):
        parts = indices(node)
        if found and not all(isinstance(index, (cst.Name, cst.BaseNumber, cst.Ellipsis)) for index in parts):
            break
        found = [*parts, *found]
        node = node.value
    return node, found


def dimensions(indices: Sequence[cst.CSTNode], variables: Sequence[str]) -> dict[str, int]:
    """Variable → the dimension that it indexes, negative after an ellipsis. Raises AnalysisRefused."""
    dims: dict[str, int] = {}
    ellipsis = next((number for number, index in enumerate(indices) if isinstance(index, cst.Ellipsis)), len(indices))
    for number, index in enumerate(indices):
        if isinstance(index, cst.Name) and index.value in variables:
            before, after = indices[:number], indices[number + 1 :]
            counted = before if number < ellipsis else after
            if index.value in dims or not all(_takes_one_dimension(part, variables) for part in counted):
                raise AnalysisRefused(f"which dimension {index.value} is an index of is not certain")
            dims[index.value] = number if number < ellipsis else number - len(indices)
    return dims


def is_full(index: cst.CSTNode) -> bool:
    """Whether an index is ``:``."""
    return isinstance(index, cst.Slice) and index.lower is index.upper is index.step is None


def _takes_one_dimension(index: cst.CSTNode, variables: Sequence[str]) -> bool:
    is_variable = isinstance(index, cst.Name) and index.value in variables
    return is_variable or isinstance(index, (cst.Slice, cst.Integer))
