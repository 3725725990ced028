"""Expressions over one sample, as expressions over the rows of a whole batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, NoReturn

import libcst as cst

from unstall.optimize.indexing import expressions, operations
from unstall.optimize.source.effects import may_differ
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.purity import method_of

_INDEXERS = ("iloc", "loc", "at", "iat")
_TABLES = ("Tensor", "ndarray", "memmap", "list", "tuple", "dict", "")
_LITERALS = (cst.BaseNumber, cst.SimpleString, cst.Ellipsis)
_WHOLE = cst.SubscriptElement(cst.Slice(None, None))


class RowKind(Enum):
    """What an expression stands for in the batch."""

    SHARED = auto()
    """The same for every sample."""
    ROWS = auto()
    """A tensor or an array with a row for each sample."""
    CONTAINER = auto()
    """A tuple, list or dict of rows."""


Translated = tuple[cst.BaseExpression, RowKind]


class Rows:
    """Translates the expressions of one ``__getitem__``.

    Args:
        cls: the class that it is a method of.
        attributes: type names of the dataset's attributes as the program ran; ``None``, ``True`` and ``False`` as such.
        indices: the name that holds the indices of the batch.
    """

    def __init__(self, module: SourceModule, cls: cst.ClassDef, attributes: Mapping[str, str], indices: str):
        self.module, self.cls, self.attributes, self.indices = module, cls, attributes, indices
        self.kinds: dict[str, RowKind] = {}
        """What each local name holds at this place."""
        self.helpers = {"indexed_batch"}
        """Modules of :mod:`unstall.optimize.runtime` that the translation needs."""
        self.guards: list[str] = []
        """Conditions under which the samples must be made one by one, as source."""
        self.tables: list[str] = []
        """Type names of what is indexed, as far as known."""

    def __call__(self, node: cst.BaseExpression) -> Translated:
        """The expression for the batch, and what it stands for. Raises AnalysisRefused."""
        translate: Callable[[Any], Translated] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if translate is not None:
            return translate(node)
        if isinstance(node, _LITERALS):
            return node, RowKind.SHARED
        self.refuse(node, f"{self._short(node)} is not known for many samples at once")

    def indexes_arrays(self) -> bool:
        """Whether something that may be a tensor or an array is indexed: lists are read one by one in any case."""
        return any(type_name not in ("list", "tuple", "dict") for type_name in self.tables)

    def refuse(self, node: cst.CSTNode, reason: str) -> NoReturn:
        """Raise AnalysisRefused with the line."""
        raise AnalysisRefused(f"line {self.module.first_line(node)}: {reason}")

    def shared(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is the same for every sample. Raises AnalysisRefused where it is neither."""
        return self(node)[1] is RowKind.SHARED

    def truth(self, test: cst.BaseExpression) -> bool | None:
        """Whether a condition held as the program ran; None where that is not known."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self.truth(test.expression)
            return None if inner is None else not inner
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            (comparison,) = test.comparisons
            type_name = self._attribute_type(test.left)
            if type_name and self.module.code(comparison.comparator) == "None":
                is_none = type_name == "None"
                if isinstance(comparison.operator, cst.Is):
                    return is_none
                return not is_none if isinstance(comparison.operator, cst.IsNot) else None
        return {"None": False, "False": False, "True": True}.get(self._attribute_type(test))

    def guard(self, test: cst.BaseExpression, *, taken: bool) -> None:
        """Make the samples one by one where a condition is ``taken``, which it was not as the program ran."""
        if any(isinstance(node, cst.Name) and node.value in self.kinds for node in self.module.inside(test)):
            self.refuse(test, f"{self._short(test)} depends on the sample")
        code = self.module.code(test)
        condition = code if taken else f"not ({code})"
        if condition not in self.guards:
            self.guards.append(condition)

    def _attribute_type(self, node: cst.BaseExpression) -> str:
        """The type name of ``self.name``, '' where it is anything else or unknown."""
        head, _, name = dotted(node).partition(".")
        return self.attributes.get(name, "") if head == "self" else ""

    def _short(self, node: cst.CSTNode) -> str:
        return self.module.code(node).splitlines()[0][:40]

    # ------------------------------------------------------------------ by kind of node

    def _name(self, node: cst.Name) -> Translated:
        return node, self.kinds.get(node.value, RowKind.SHARED)

    def _attribute(self, node: cst.Attribute) -> Translated:
        value, kind = self(node.value)
        if kind is not RowKind.SHARED:
            self.refuse(node, f".{node.attr.value} of a sample is not that of a batch")
        if dotted(node.value) == "self" and method_of(self.cls, node.attr.value) is not None:
            self.refuse(node, f"{self._short(node)} is computed for each sample")
        return node.with_changes(value=value), kind

    def _binaryoperation(self, node: cst.BinaryOperation) -> Translated:
        (left, left_kind), (right, right_kind) = self(node.left), self(node.right)
        kinds = {left_kind, right_kind}
        if kinds != {RowKind.SHARED} and (
            RowKind.CONTAINER in kinds or not isinstance(node.operator, operations.OPERATORS)
        ):
            self.refuse(node, f"{self._short(node)} is not done row by row")
        return node.with_changes(left=left, right=right), _joined(kinds)

    def _unaryoperation(self, node: cst.UnaryOperation) -> Translated:
        expression, kind = self(node.expression)
        if kind is not RowKind.SHARED and not isinstance(node.operator, operations.SIGNS):
            self.refuse(node, f"{self._short(node)} is one answer for a whole batch")
        return node.with_changes(expression=expression), kind

    def _comparison(self, node: cst.Comparison) -> Translated:
        left, kind = self(node.left)
        kinds, comparisons = {kind}, []
        for comparison in node.comparisons:
            comparator, kind = self(comparison.comparator)
            kinds.add(kind)
            comparisons.append(comparison.with_changes(comparator=comparator))
        one_by_row = len(comparisons) == 1 and isinstance(comparisons[0].operator, operations.COMPARISONS)
        if kinds != {RowKind.SHARED} and (RowKind.CONTAINER in kinds or not one_by_row):
            self.refuse(node, f"{self._short(node)} is one answer for a whole batch")
        return node.with_changes(left=left, comparisons=comparisons), _joined(kinds)

    def _booleanoperation(self, node: cst.BooleanOperation) -> Translated:
        if not (self.shared(node.left) and self.shared(node.right)):
            self.refuse(node, f"{self._short(node)} is one answer for a whole batch")
        return node, RowKind.SHARED

    def _ifexp(self, node: cst.IfExp) -> Translated:
        """``transform(x) if transform else x``: a branch that was not taken, and cannot be translated, is guarded."""
        if not self.shared(node.test):
            self.refuse(node, f"{self._short(node.test)} depends on the sample")
        taken = self.truth(node.test)
        if taken is not None:
            self.guard(node.test, taken=not taken)
            return self(node.body if taken else node.orelse)
        (body, body_kind), (orelse, other_kind) = self(node.body), self(node.orelse)
        if body_kind is not other_kind:
            self.refuse(node, f"{self._short(node)} may be a row or not")
        return node.with_changes(body=body, orelse=orelse), body_kind

    # ------------------------------------------------------------------ indexing

    def _subscript(self, node: cst.Subscript) -> Translated:
        value, kind = self(node.value)
        if kind is RowKind.CONTAINER:
            self.refuse(node, f"{self._short(node)} takes a container apart")
        first, *others = [element.with_changes(comma=cst.MaybeSentinel.DEFAULT) for element in node.slice]
        if not all(self._is_shared_element(element) for element in others):
            self.refuse(node, f"{self._short(node)} is indexed in another dimension than the first")
        if self._is_shared_element(first):
            if kind is RowKind.SHARED:
                return node, kind
            whole = (
                [] if isinstance(first.slice, cst.Index) and isinstance(first.slice.value, cst.Ellipsis) else [_WHOLE]
            )
            return expressions.indexed(value, [*whole, first, *others]), RowKind.ROWS
        if kind is not RowKind.SHARED:
            self.refuse(node, f"{self._short(node)} indexes a row by another")
        self._check_table(node)
        if isinstance(first.slice, cst.Index):
            rows, whole = expressions.called("_rows", value, self(first.slice.value)[0]), [_WHOLE]
        else:
            rows, whole = self._window(node, value, cst.ensure_type(first.slice, cst.Slice)), [_WHOLE, _WHOLE]
        return expressions.indexed(rows, [*whole, *others]) if others else rows, RowKind.ROWS

    def _is_shared_element(self, element: cst.SubscriptElement) -> bool:
        """Whether an index or a slice is the same for every sample."""
        part: Any = element.slice
        bounds = [part.value] if isinstance(part, cst.Index) else [part.lower, part.upper, part.step]
        return all(bound is None or self.shared(bound) for bound in bounds)

    def _check_table(self, node: cst.Subscript) -> None:
        """What is indexed by the sample's index can be a tensor or an array."""
        table = node.value
        last = table.attr.value if isinstance(table, cst.Attribute) else ""
        if last in _INDEXERS:
            self.refuse(node, f"{self._short(table)} is a pandas frame's, which makes an object for each row")
        type_name = self._attribute_type(table)
        if type_name not in _TABLES:
            self.refuse(node, f"{self._short(table)} is a {type_name}, not a tensor or an array")
        self.tables.append(type_name)

    def _window(self, node: cst.Subscript, table: cst.BaseExpression, part: cst.Slice) -> cst.Call:
        """``table[index : index + n]`` for every index."""
        if part.lower is None or part.upper is None or part.step is not None:
            self.refuse(node, f"{self._short(node)} may have another length for each sample")
        self.helpers.add("row_windows")
        return expressions.called("_windows", table, self(part.lower)[0], self(part.upper)[0])

    # ------------------------------------------------------------------ calls

    def _call(self, node: cst.Call) -> Translated:
        name = self.module.name(node)
        if may_differ(name or f".{expressions.method(node)}"):
            self.refuse(node, f"{self._short(node.func)} may differ every time")
        if any(arg.star for arg in node.args):
            self.refuse(node, f"the arguments of {self._short(node.func)} are packed")
        if isinstance(node.func, cst.Attribute) and not self.shared(node.func.value):
            return self._method_call(node, node.func)
        if (
            name in ("builtins.tuple", "builtins.list")
            and len(node.args) == 1
            and _is_comprehension(node.args[0].value)
        ):
            return self._container_of(node)
        if name in operations.MAKES_TENSOR and node.args:
            return self._tensor(node, operations.MAKES_TENSOR[name])
        kinds = [self(arg.value)[1] for arg in node.args]
        if all(kind is RowKind.SHARED for kind in kinds):
            return self._shared_call(node, name)
        if name == "builtins.dict" and all(arg.keyword is not None for arg in node.args):
            return node.with_changes(
                args=[arg.with_changes(value=self.leaf(arg.value)) for arg in node.args]
            ), RowKind.CONTAINER
        only_first = kinds[0] is RowKind.ROWS and all(kind is RowKind.SHARED for kind in kinds[1:])
        rows = self(node.args[0].value)[0]
        if only_first and name in ("builtins.int", "builtins.float") and len(kinds) == 1:
            return expressions.to_type(
                expressions.called("torch.as_tensor", rows), "long" if name == "builtins.int" else "double"
            ), RowKind.ROWS
        if only_first and name in operations.ELEMENTWISE_FUNCTIONS:
            first = node.args[0].with_changes(value=rows)
            return node.with_changes(args=[first, *node.args[1:]]), RowKind.ROWS
        self.refuse(node, f"{self._short(node.func)} is called for each sample")

    def _shared_call(self, node: cst.Call, name: str) -> Translated:
        """A call that has nothing to do with the sample may be made once for all."""
        library = name.partition(".")[0] in ("torch", "numpy", "math") and "." in name
        if not library and name not in operations.SHARED_BUILTINS:
            self.refuse(node, f"{self._short(node.func)} is called for each sample")
        return node, RowKind.SHARED

    def _tensor(self, node: cst.Call, dtype: str) -> Translated:
        """``torch.tensor(row)``, or of a list of numbers."""
        first, *others = node.args
        if any(arg.keyword is None or arg.keyword.value != "dtype" or not self.shared(arg.value) for arg in others):
            self.refuse(node, f"{self._short(node)} asks for more than a data type")
        keywords = [f"dtype=torch.{dtype}"] if dtype else [f"dtype={self.module.code(arg.value)}" for arg in others]

        def converted(rows: cst.BaseExpression) -> cst.BaseExpression:
            return expressions.called("torch.as_tensor", rows, *keywords)

        if isinstance(first.value, cst.List):
            columns = [self(element.value) for element in first.value.elements]
            if any(kind is RowKind.ROWS for _, kind in columns):
                if any(kind is not RowKind.ROWS for _, kind in columns):
                    self.refuse(node, f"{self._short(node)} combines a row with what is none")
                stacked = cst.List([cst.Element(converted(rows)) for rows, _ in columns])
                return expressions.called("torch.stack", stacked, "dim=-1"), RowKind.ROWS
        rows, kind = self(first.value)
        if kind is RowKind.CONTAINER:
            self.refuse(node, f"{self._short(node)} takes a container apart")
        return (converted(rows), kind) if kind is RowKind.ROWS else (node, kind)

    def _method_call(self, node: cst.Call, func: cst.Attribute) -> Translated:
        """A method of a row."""
        rows, kind = self(func.value)
        name = func.attr.value
        if kind is RowKind.CONTAINER or not all(self.shared(arg.value) for arg in node.args):
            self.refuse(node, f".{name}() may mix the samples of a batch")
        if name == "item" and not node.args:
            self.helpers.add("row_numbers")
            return expressions.called("_numbers", rows), RowKind.ROWS
        args = node.args if name in operations.ELEMENTWISE_METHODS else self._shifted(node, name)
        return node.with_changes(func=func.with_changes(value=rows), args=args), RowKind.ROWS

    def _shifted(self, node: cst.Call, name: str) -> Sequence[cst.Arg]:
        """The arguments of a method that names dimensions, for rows that have one more in front."""
        values = [arg.value for arg in node.args]
        if len(values) == 1 and isinstance(values[0], (cst.Tuple, cst.List)):
            values = [element.value for element in values[0].elements]
        plain = all(arg.keyword is None and not arg.star for arg in node.args)
        if (
            name in ("view", "reshape")
            and plain
            and values
            and not (name == "view" and "torch." in self.module.code(node))
        ):
            return expressions.args(f"len({self.indices})", *map(self.module.code, values))
        dimensions = [_integer(self.module.code(value)) for value in values]
        if plain and None not in dimensions:
            moved = [str(number + 1 if number >= 0 else number) for number in dimensions if number is not None]
            if name == "permute" or (name == "transpose" and len(moved) > 2):
                return expressions.args("0", *moved)
            if (name in ("unsqueeze", "squeeze") and len(moved) == 1) or (name == "swapaxes" and len(moved) == 2):
                return expressions.args(*moved)
            if name == "flatten" and not moved:
                return expressions.args("1")
        self.refuse(node, f".{name}() of a sample is not known for many at once")

    # ------------------------------------------------------------------ containers

    def leaf(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A part of the sample; what is the same for every sample is repeated, as the collate does."""
        translated, kind = self(node)
        if kind is not RowKind.SHARED:
            return translated
        repeated = f"torch.utils.data.default_collate([{self.module.code(node)} for _ in {self.indices}])"
        return cst.parse_expression(repeated)

    def _tuple(self, node: cst.Tuple | cst.List) -> Translated:
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            self.refuse(node, "a sample is put together of others")
        if all(self.shared(element.value) for element in node.elements):
            return node, RowKind.SHARED
        elements = [element.with_changes(value=self.leaf(element.value)) for element in node.elements]
        return node.with_changes(elements=elements), RowKind.CONTAINER

    _list = _tuple

    def _dict(self, node: cst.Dict) -> Translated:
        elements = []
        for element in node.elements:
            if not isinstance(element, cst.DictElement) or not self.shared(element.key):
                self.refuse(node, "a sample is put together of others")
            elements.append(element.with_changes(value=self.leaf(element.value)))
        return node.with_changes(elements=elements), RowKind.CONTAINER

    def _container_of(self, node: cst.Call) -> Translated:
        """``tuple(table[index] for table in self.tables)``."""
        inner, kind = self._listcomp(node.args[0].value)
        return node.with_changes(args=[node.args[0].with_changes(value=inner)]), kind

    def _listcomp(self, node: Any) -> Translated:
        """A list of rows, one for each of some tables."""
        with_names = self._over_tables(node)
        elt, kind = with_names(node.elt)
        if kind is not RowKind.ROWS:
            self.refuse(node, f"{self._short(node)} is made for each sample")
        return node.with_changes(elt=elt), RowKind.CONTAINER

    def _dictcomp(self, node: cst.DictComp) -> Translated:
        with_names = self._over_tables(node)
        value, kind = with_names(node.value)
        if kind is not RowKind.ROWS or with_names(node.key)[1] is not RowKind.SHARED:
            self.refuse(node, f"{self._short(node)} is made for each sample")
        return node.with_changes(value=value), RowKind.CONTAINER

    def _over_tables(self, node: Any) -> Rows:
        """This translator for the inside of a comprehension over what is the same for every sample."""
        loop = node.for_in
        targets = {name.value for name in self.module.inside(loop.target) if isinstance(name, cst.Name)}
        method = expressions.method(loop.iter)
        tables = loop.iter.func.value if method in ("items", "values") and not loop.iter.args else loop.iter
        if loop.ifs or loop.inner_for_in is not None or targets & self.kinds.keys() or not self.shared(tables):
            self.refuse(node, f"{self._short(node)} is made for each sample")
        return self


def _joined(kinds: set[RowKind]) -> RowKind:
    return RowKind.ROWS if RowKind.ROWS in kinds else RowKind.SHARED


def _is_comprehension(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.GeneratorExp, cst.ListComp))


def _integer(code: str) -> int | None:
    try:
        return int(code)
    except ValueError:
        return None
