"""A turn of a loop over torch tensors, as a function of the rows that it takes: ``x[i]`` becomes an argument ``x_i``.

What is refused would be different, or done another number of times, if it ran once for all turns: conditions on data,
random numbers, output, changes in place, calls of what is not known. ``torch.vmap`` refuses the rest as it runs.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from unstall.optimize.source.effects import may_differ, named
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.names import fresh_name
from unstall.optimize.vectorize.blocks import names_of, source

Function = ast.FunctionDef
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
_EXPRESSIONS = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.UnaryOp,
    ast.Compare, ast.Call, ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip
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

    def __call__(self, node: ast.expr, unreadable: Collection[str] = ()) -> ast.expr:
        """An expression of the body over the turn's arguments. Raises AnalysisRefused.

        ``unreadable``: names that other turns write.
        """
        self.scope.check(node)
        read = set(names_of([node], ast.Load))
        if read & set(unreadable):
            raise AnalysisRefused(f"line {node.lineno}: a turn reads {', '.join(sorted(read & set(unreadable)))}")
        return _Rows(self).visit(ast.parse(source(node), mode="eval").body)  # type: ignore[no-any-return]

    def is_mask(self, node: ast.expr) -> bool:
        """Whether an expression is surely a boolean tensor."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self.is_mask(node.left) and self.is_mask(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self.is_mask(node.operand)
        return isinstance(node, ast.Compare) or (isinstance(node, ast.Name) and node.id in self.masks)

    def row(self, node: ast.Subscript) -> ast.expr | None:
        """``x[:, i, 2:]`` as ``x_i[:, 2:]``; None where no variable is an index. Raises AnalysisRefused."""
        base, indices = indexed(node)
        dims = dimensions(indices, self.variables)
        if not dims:
            return None
        made = {*self.local, *self.rows}
        if not isinstance(base, (ast.Name, ast.Attribute)) or set(names_of([base], ast.Load)) & made:
            raise AnalysisRefused(f"{source(base)} is indexed by a loop's variable and made in the turn")
        name = self._argument(Argument(source(base), dims))
        rest = [index for index in indices if not (isinstance(index, ast.Name) and index.id in dims)]
        while rest and (is_full(rest[-1]) or (len(rest) == 1 and _is_ellipsis(rest[0]))):
            rest.pop()
        return ast.parse(f"{name}[{', '.join(map(_item, rest))}]" if rest else name, mode="eval").body

    def number(self, variable: str, other: ast.expr) -> None:
        """A loop's variable is compared with a tensor: its values become an argument. Raises AnalysisRefused."""
        if isinstance(other, ast.Constant):
            raise AnalysisRefused(f"it computes with the number {variable}")
        if isinstance(other, ast.Name) and other.id in self.variables:
            self.arguments.setdefault(variable, Argument("", {variable: 0}))
            return
        base = indexed(other)[0] if isinstance(other, ast.Subscript) else other
        root = set(names_of([base], ast.Load))
        if isinstance(base, (ast.Name, ast.Attribute)) and not root & {*self.local, *self.variables}:
            of_row = self.arguments.get(source(base))
            device = of_row.base if of_row else source(base)
            self.arguments.setdefault(variable, Argument("", {variable: 0}, device))
        if variable not in self.arguments:
            raise AnalysisRefused(f"it computes with the number {variable}")

    def _argument(self, argument: Argument) -> str:
        for name, present in self.arguments.items():
            if (present.base, present.dims) == (argument.base, argument.dims):
                return name
        stem = argument.base.rpartition(".")[2] + "_" + "".join(argument.dims)
        name = fresh_name(stem, {*self.scope.taken, *self.arguments})
        self.arguments[name] = argument
        return name


class _Rows(ast.NodeTransformer):
    """Puts a turn's arguments in the place of rows, and products with masks in the place of boolean indices."""

    def __init__(self, turn: Turn):
        self.turn = turn

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``x[mask].mean(0)``: the rows that a mask selects, as a product with it."""
        over_rows = [ast.unparse(part) for part in (*node.args, *node.keywords)] in (["0"], ["dim=0"], ["axis=0"])
        if over_rows and isinstance(node.func, ast.Attribute) and node.func.attr in ("sum", "mean"):
            selected = node.func.value
            if isinstance(selected, ast.Subscript) and self.turn.is_mask(selected.slice):
                torch = self.turn.scope.torch
                mask, values = (self.visit(part) for part in (selected.slice, selected.value))
                mask_text, text = (f"({source(mask)})" if not isinstance(mask, ast.Name) else mask.id), source(values)
                total = f"{torch}.tensordot({mask_text}.to({text}.dtype), {text}, {mask_text}.dim())"
                mean = f"{total} / {mask_text}.sum()"
                return ast.parse(mean if node.func.attr == "mean" else total, mode="eval").body
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """A row of a tensor."""
        if any(self.turn.is_mask(index) for index in indexed(node)[1]):
            raise AnalysisRefused(f"how many rows {source(node)} has depends on data")
        row = self.turn.row(node)
        return self.generic_visit(node if row is None else row)  # type: ignore[return-value]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A loop's variable that is neither an index nor compared."""
        if node.id in self.turn.variables:
            raise AnalysisRefused(f"it computes with the number {node.id}")
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A comparison of a tensor with a loop's variable."""
        sides = [node.left, *node.comparators]
        for number, (side, other) in enumerate((sides, sides[::-1])):
            if isinstance(side, ast.Name) and side.id in self.turn.variables:
                self.turn.number(side.id, other)
            else:
                sides[number] = self.visit(side)
        return ast.Compare(sides[0], node.ops, sides[1:])


class Scope:
    """The function that a loop stands in, and what it and its module say of the names that the loop calls."""

    def __init__(self, module: SourceModule, tree: ast.Module, function: Function, torch: str):
        self.module, self.tree, self.function, self.torch = module, tree, function, torch
        self.taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
            node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)
        }
        self.called: list[Function] = []
        """The functions of the module that the loop calls: their lines belong to it."""

    def check(self, node: ast.expr, depth: int = 0) -> None:
        """Raise AnalysisRefused unless an expression only computes with tensors."""
        for inner in ast.walk(node):
            if not isinstance(inner, _EXPRESSIONS) or isinstance(getattr(inner, "op", None), ast.Not):
                raise AnalysisRefused(f"line {node.lineno}: {type(inner).__name__} is not taken for all turns at once")
            if isinstance(inner, ast.Compare) and (
                len(inner.ops) > 1 or isinstance(inner.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot))
            ):
                raise AnalysisRefused(f"line {node.lineno}: {source(inner)} is a decision, not a tensor")
            if isinstance(inner, ast.Call):
                self._check_call(inner, depth)

    def value_of(self, name: str) -> ast.expr | None:
        """What a name of the function, module or class is set to; None unless that is in one place."""
        if name.startswith("self."):
            nodes = [node for cls in self._classes() for node in ast.walk(cls) if isinstance(node, ast.Assign)]
            values = [node.value for node in nodes if name in map(source, node.targets)]
            return values[0] if len(values) == 1 else None
        for scope in (self.function.body, self.tree.body):
            assignments = [node for part in scope for node in _own(part) if isinstance(node, ast.Assign)]
            values = [node.value for node in assignments if name in map(source, node.targets)]
            if values or name in {arg.arg for arg in ast.walk(self.function.args) if isinstance(arg, ast.arg)}:
                return values[0] if len(values) == 1 else None
        return None

    def _check_call(self, call: ast.Call, depth: int) -> None:
        spelled, line = source(call.func), call.lineno
        qualified = self.module.resolve(spelled)
        head, _, last = qualified.rpartition(".")
        in_place = (last.endswith("_") and not last.endswith("__")) or any(
            keyword.arg in ("out", "inplace", None) for keyword in call.keywords
        )
        if may_differ(qualified) or in_place:
            raise AnalysisRefused(f"line {line}: {spelled} draws random numbers, or changes what it is given")
        if (head in _TORCH and last not in _STATES) or spelled in ("abs", "len") or self._is_layer(spelled):
            return
        function = self._definition(spelled)
        if function is not None:
            self._check_function(function, line, depth)
        elif not (isinstance(call.func, ast.Attribute) and last in _METHODS and head != "self"):
            raise AnalysisRefused(f"line {line}: what {spelled} does is not known")

    def _is_layer(self, spelled: str) -> bool:
        """Whether a name is a layer or a loss of torch.nn, made in the function, the module or the class."""
        value = self.value_of(spelled)
        calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)] if value is not None else []
        return isinstance(value, ast.Call) and all(
            self.module.resolve(source(call.func)).startswith("torch.nn.")
            and not any(keyword.arg == "inplace" for keyword in call.keywords) for call in calls
        )  # fmt: skip

    def _definition(self, spelled: str) -> Function | None:
        """A function of the module, or a method of the class around the loop."""
        bodies = [cls.body for cls in self._classes()] if spelled.startswith("self.") else [self.tree.body]
        name = spelled.removeprefix("self.")
        return next(
            (part for body in bodies for part in body if isinstance(part, Function) and part.name == name), None
        )

    def _classes(self) -> list[ast.ClassDef]:
        return [cls for cls in self.tree.body if isinstance(cls, ast.ClassDef) and self.function in cls.body]

    def _check_function(self, function: Function, line: int, depth: int) -> None:
        """A function that sets names and returns, and does nothing else."""
        if depth >= _MAX_DEPTH or function.decorator_list:
            raise AnalysisRefused(f"line {line}: {function.name} is decorated, or calls too deep to follow")
        self.called.append(function)
        for statement in function.body:
            sets_names = isinstance(statement, ast.Assign) and all(map(is_names, statement.targets))
            if not sets_names and not isinstance(statement, ast.Return) and not is_text(statement):
                raise AnalysisRefused(f"line {statement.lineno}: {function.name} does more than compute")
            if isinstance(statement, (ast.Assign, ast.Return)) and statement.value is not None:
                self.check(statement.value, depth + 1)


def indexed(node: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """What is indexed, and by what: ``x[i][j]`` as ``x[i, j]``, unless an index before the last is no plain one."""
    indices: list[ast.expr] = []
    while isinstance(node, ast.Subscript):
        part = node.slice
        parts = list(part.elts) if isinstance(part, ast.Tuple) else [part]
        if indices and not all(isinstance(index, (ast.Name, ast.Constant)) for index in parts):
            break
        indices = [*parts, *indices]
        node = node.value
    return node, indices


def dimensions(indices: Sequence[ast.expr], variables: Sequence[str]) -> dict[str, int]:
    """Variable → the dimension that it indexes, negative after an ellipsis. Raises AnalysisRefused."""
    dims: dict[str, int] = {}
    ellipsis = next((number for number, index in enumerate(indices) if _is_ellipsis(index)), len(indices))
    for number, index in enumerate(indices):
        if isinstance(index, ast.Name) and index.id in variables:
            before, after = indices[:number], indices[number + 1 :]
            counted = before if number < ellipsis else after
            if index.id in dims or not all(_takes_one_dimension(part, variables) for part in counted):
                raise AnalysisRefused(f"which dimension {index.id} is an index of is not certain")
            dims[index.id] = number if number < ellipsis else number - len(indices)
    return dims


def is_full(index: ast.expr) -> bool:
    """Whether an index is ``:``."""
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None


def is_names(target: ast.expr) -> bool:
    """Whether an assignment's target is a name, or several."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return all(isinstance(part, ast.Name) for part in parts)


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring or ``pass``."""
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _takes_one_dimension(index: ast.expr, variables: Sequence[str]) -> bool:
    return (
        isinstance(index, ast.Slice)
        or (isinstance(index, ast.Constant) and type(index.value) is int)
        or (isinstance(index, ast.Name) and index.id in variables)
    )


def _is_ellipsis(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and index.value is Ellipsis


def _item(index: ast.expr) -> str:
    return source(index) if not isinstance(index, ast.Slice) else ast.unparse(ast.Subscript(ast.Name("x"), index))[2:-1]


def _own(node: ast.AST) -> list[ast.AST]:
    """A statement and all in it, but for the functions and classes that it defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return []
    return [node, *(inner for child in ast.iter_child_nodes(node) for inner in _own(child))]
