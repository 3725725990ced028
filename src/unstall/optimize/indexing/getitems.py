"""The ``__getitems__`` of a dataset class, written from its ``__getitem__``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from unstall.optimize.indexing import operations
from unstall.optimize.indexing.rows import RowKind, Rows
from unstall.optimize.source.edit import statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.purity import method_of
from unstall.optimize.source.samples import sample_method
from unstall.optimize.source.templates import Templates

_AS_NUMBER = Templates(["I.tolist()", "I.item()", "int(I)"])
_IS_TENSOR = Templates(["torch.is_tensor(I)", "isinstance(I, torch.Tensor)"])


@dataclass(frozen=True)
class BatchedGetter:
    """A ``__getitems__`` for a class."""

    cls: str
    """The class's name."""
    method: cst.FunctionDef
    """The ``__getitem__`` of the class, in the tree."""
    added: cst.FunctionDef
    """The ``__getitems__`` to write after it."""
    bare: bool
    """Whether a sample is in no container: then torch's own collate needs the samples in a real list."""
    helpers: tuple[str, ...]
    """Modules of :mod:`unstall.optimize.runtime` that it needs."""


def batched_getter(module: SourceModule, line: int, attributes: Mapping[str, str]) -> BatchedGetter:
    """The ``__getitems__`` for the ``__getitem__`` that begins on a line. Raises AnalysisRefused.

    ``attributes``: type names of the dataset's attributes as the program ran; ``None``, ``True`` and ``False`` as such.
    """
    cls, method = sample_method(module, line)
    name = cls.name.value
    if method_of(cls, "__getitems__") is not None:
        raise AnalysisRefused(f"{name} makes whole batches already")
    if not isinstance(method.body, cst.IndentedBlock):
        raise AnalysisRefused(f"{name}.__getitem__ stands on a line with its body")
    indices = fresh_name("indices", {node.value for node in module.inside(method) if isinstance(node, cst.Name)})
    index = method.params.params[1].name.value
    writer = _GetitemsWriter(module, method, Rows(module, cls, attributes, indices), index)
    body = writer.body(method.body.body)
    if not writer.rows.indexes_arrays():
        raise AnalysisRefused(f"{name}.__getitem__ indexes no tensor or array")
    tree = module.tree
    different = " or ".join([f"type(self).__getitem__ is not {name}.__getitem__", *writer.rows.guards])
    front = [
        statement(tree, f"if {different}:\n    return [self[{index}] for {index} in {indices}]\n"),
        statement(tree, f"{index} = torch.as_tensor({indices})"),
    ]
    head = statement(tree, f"def __getitems__(self, {indices}):\n    pass\n")
    added = head.with_changes(
        body=method.body.with_changes(body=[*front, *body]), leading_lines=[cst.EmptyLine(indent=False)]
    )
    return BatchedGetter(name, method, added, writer.bare, tuple(sorted(writer.rows.helpers)))


class _GetitemsWriter:
    """Translates the statements of one ``__getitem__``."""

    def __init__(self, module: SourceModule, method: cst.FunctionDef, rows: Rows, index: str):
        self.module, self.method, self.rows, self.index = module, method, rows, index
        rows.kinds[index] = RowKind.ROWS
        self.fresh: set[str] = set()
        """Names of rows that share no memory with the dataset."""
        self.dicts: set[str] = set()
        """Names of containers that this method made."""
        self.bare = False

    def body(self, statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """The statements for the batch. Raises AnalysisRefused."""
        translated = [line for inner in statements for line in self._statement(inner)]
        if not translated or not _returns(translated[-1]):
            raise AnalysisRefused(f"line {self.module.last_line(self.method)}: a sample may be nothing")
        return translated

    def _statement(self, line: Any) -> list[cst.BaseStatement]:
        if isinstance(line, cst.If):
            return self._if(line)
        if not isinstance(line, cst.SimpleStatementLine):
            self.rows.refuse(line, "a statement of many lines is run for each sample")
        small = [new for part in line.body for new in self._small(part)]
        bare = line.with_changes(body=small, leading_lines=(), trailing_whitespace=cst.TrailingWhitespace())
        return [bare] if small else []

    def _small(self, part: Any) -> list[cst.BaseSmallStatement]:
        if isinstance(part, cst.Pass) or (isinstance(part, cst.Expr) and isinstance(part.value, cst.BaseString)):
            return []
        if isinstance(part, cst.Return) and part.value is not None:
            return [self._return(part)]
        if isinstance(part, cst.AnnAssign) and part.value is not None:
            part = cst.Assign([cst.AssignTarget(part.target)], part.value)
        if isinstance(part, cst.Assign) and len(part.targets) == 1:
            return self._assign(part, part.targets[0].target)
        if isinstance(part, cst.AugAssign) and isinstance(part.target, cst.Name):
            return [self._augmented(part, part.target.value)]
        self.rows.refuse(part, "this is done for each sample")

    def _return(self, part: cst.Return) -> cst.Return:
        assert part.value is not None
        value, kind = self.rows(part.value)
        if kind is RowKind.SHARED:
            self.rows.refuse(part, "every sample is the same")
        self.bare |= kind is RowKind.ROWS
        self_and_batch = cst.parse_expression(f"_IndexedBatch(self, {self.rows.indices}, x)")
        batch = cst.ensure_type(self_and_batch, cst.Call)
        if isinstance(value, cst.Tuple) and not value.lpar:
            value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        returned = batch.with_changes(args=[*batch.args[:2], batch.args[2].with_changes(value=value)])
        return part.with_changes(value=returned, whitespace_after_return=cst.SimpleWhitespace(" "))

    def _assign(self, part: cst.Assign, target: Any) -> list[cst.BaseSmallStatement]:
        if isinstance(target, cst.Name) and target.value == self.index and self._is_number_of_index(part.value):
            return []
        value, kind = self.rows(part.value)
        if isinstance(target, cst.Name):
            self._bind(target.value, part.value, kind)
        elif isinstance(target, cst.Tuple) and isinstance(part.value, cst.Tuple):
            self._unpack(part, target, part.value)
        elif isinstance(target, cst.Subscript) and dotted(target.value) in self.dicts:
            value = self.rows.leaf(part.value)
            if not all(
                self.rows.shared(inner.slice.value) for inner in target.slice if isinstance(inner.slice, cst.Index)
            ):
                self.rows.refuse(part, "a key of the sample is its own")
        else:
            self.rows.refuse(part, f"{self.module.code(target)} is set for each sample")
        return [part.with_changes(value=value)]

    def _bind(self, name: str, value: cst.BaseExpression, kind: RowKind) -> None:
        self.rows.kinds[name] = kind
        self.fresh.discard(name)
        self.dicts.discard(name)
        method = value.func.attr.value if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) else ""
        if isinstance(value, cst.BinaryOperation) or method in operations.COPYING_METHODS:
            self.fresh.add(name)
        if kind is RowKind.CONTAINER and isinstance(value, (cst.Dict, cst.DictComp, cst.Call)):
            self.dicts.add(name)

    def _unpack(self, part: cst.Assign, target: cst.Tuple, value: cst.Tuple) -> None:
        """``x, y = self.x[index], self.y[index]``."""
        if len(target.elements) != len(value.elements) or not all(
            isinstance(element.value, cst.Name) for element in target.elements
        ):
            self.rows.refuse(part, "a sample is taken apart")
        names = [cst.ensure_type(element.value, cst.Name).value for element in target.elements]
        kinds = [self.rows(element.value)[1] for element in value.elements]
        repeated = any(kind is not RowKind.SHARED for kind in kinds)  # as leaves of a container are
        for name, element, kind in zip(names, value.elements, kinds):
            self._bind(name, element.value, RowKind.ROWS if repeated and kind is RowKind.SHARED else kind)

    def _augmented(self, part: cst.AugAssign, name: str) -> cst.AugAssign:
        """``x -= self.mean``, where that changes nothing of the dataset."""
        value, kind = self.rows(part.value)
        operator = type(part.operator).__name__.replace("Assign", "")
        is_known = operator in {known.__name__ for known in operations.OPERATORS}
        held = self.rows.kinds.get(name)
        if held is RowKind.SHARED and kind is RowKind.SHARED and isinstance(part.value, cst.BaseNumber):
            return part
        if held is not RowKind.ROWS or kind is RowKind.CONTAINER or name not in self.fresh or not is_known:
            self.rows.refuse(part, f"{name} is changed in place, and may be the dataset's own")
        return part.with_changes(value=value)

    def _if(self, node: cst.If) -> list[cst.BaseStatement]:
        """A branch that was not taken as the program ran is left to the samples made one by one."""
        if self._is_index_as_number(node):
            return []
        if not self.rows.shared(node.test):
            self.rows.refuse(node, f"{self.module.code(node.test)} depends on the sample")
        taken = self.rows.truth(node.test)
        if taken is None:
            self.rows.refuse(node, f"whether {self.module.code(node.test)} holds is not known")
        self.rows.guard(node.test, taken=not taken)
        branch: Any = node.body if taken else node.orelse
        if branch is None:
            return []
        if isinstance(branch, cst.If):
            return self._if(branch)
        if isinstance(branch, cst.Else):
            branch = branch.body
        if not isinstance(branch, cst.IndentedBlock):
            self.rows.refuse(node, "several statements are on a line")
        return [line for inner in branch.body for line in self._statement(inner)]

    def _is_index_as_number(self, node: cst.If) -> bool:
        """``if torch.is_tensor(index): index = index.tolist()``."""
        holes = _IS_TENSOR.match(self.module, node.test)
        lines = node.body.body
        small: Any = lines[0].body[0] if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) else None
        return (
            holes is not None
            and node.orelse is None
            and dotted(holes["I"]) == self.index
            and isinstance(small, cst.Assign)
            and dotted(small.targets[0].target) == self.index
            and self._is_number_of_index(small.value)
        )

    def _is_number_of_index(self, value: cst.BaseExpression) -> bool:
        holes = _AS_NUMBER.match(self.module, value)
        return holes is not None and dotted(holes["I"]) == self.index


def _returns(line: cst.BaseStatement) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[-1], cst.Return)
