"""Which statements of a function are compiled, and which names they take and give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.compiling.helpers import helpers
from unstall.optimize.compiling.language import (
    helper,
    is_listed,
    outer_references,
    refuse_other_than_numbers,
)  # fmt: skip
from unstall.optimize.source.assignment import Flow, bound_before
from unstall.optimize.source.bindings import names_of
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted, root
from unstall.optimize.source.purity import is_of_comprehension, names

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_COMPREHENSIONS = (cst.ListComp, cst.GeneratorExp)


@dataclass(frozen=True)
class Region:
    """Statements of a function, one after the other, with a loop among them."""

    module: SourceModule
    function: cst.FunctionDef
    statements: tuple[Statement, ...]
    loop: Statement
    """The loop among them that takes the time."""
    returns: bool
    """They go on to the end of the function, and may leave it."""

    @cached_property
    def helpers(self) -> list[cst.FunctionDef]:
        """The functions of the file that they call."""
        return [helper for line in self.statements for helper in helpers(self.module, line)]

    @cached_property
    def nodes(self) -> list[cst.CSTNode]:
        """All that is in the statements, in order."""
        return [node for line in self.statements for node in self.module.inside(line)]

    @cached_property
    def stored(self) -> set[str]:
        """The names that they bind, but for those of comprehensions."""
        return {*names(self.module, self.statements, ExpressionContext.STORE)}

    @cached_property
    def live_out(self) -> list[str]:
        """The names that they bind and that something else of the function reads, in order of appearance."""
        if self.returns:
            return []
        inside = {*self.nodes}
        in_loop = any(isinstance(node, (cst.For, cst.While)) for node in self._ancestors())
        first = self.module.first_line(self.statements[0])
        read = {
            node.value for node in self.module.inside(self.function.body)
            if isinstance(node, cst.Name) and node not in inside and node.value in self.stored
            and self.module.context(node) is ExpressionContext.LOAD
            and (in_loop or self.module.first_line(node) > first)
            and not is_of_comprehension(self.module, node) and not self._is_of_other_loop(node, inside)
        }  # fmt: skip
        order = [node.value for node in self.nodes if isinstance(node, cst.Name)]
        return sorted(read, key=order.index)

    @cached_property
    def live_in(self) -> list[str]:
        """Those of the names that they bind which they read first, or may leave as they were."""
        self._refuse_other_scopes()
        flow = Flow(self.module, self.function, self.stored)
        bound = flow.through(self.statements, set())
        needed = flow.early | ({*self.live_out} - bound)
        for name in needed - bound_before(self.module, self.function, self.statements[0]):
            raise AnalysisRefused(f"line {self.module.first_line(self.statements[0])} may read {name} unbound")
        return sorted(needed)

    def references(self) -> Iterator[cst.BaseExpression]:
        """What they read of outside: names, and attributes of names. Raises AnalysisRefused where one may be unbound.

        What is read in one branch alone is read before all then, in any case.
        """
        local = {*names(self.module, [self.function.body], ExpressionContext.STORE)}
        unbound = local - bound_before(self.module, self.function, self.statements[0], loops_run=True)
        for line in self.statements:
            for node in outer_references(self.module, line, self.stored):
                if root(node) in unbound:
                    raise AnalysisRefused(f"line {self.module.first_line(node)} may read {root(node)} unbound")
                yield node

    def _refuse_other_scopes(self) -> None:
        """Refuse names of other scopes, and those that are looked at after an error in the midst of it."""
        for node in self.module.inside(self.function.body):
            if isinstance(node, (cst.Global, cst.Nonlocal)) and {item.name.value for item in node.names} & self.stored:
                raise AnalysisRefused(f"line {self.module.first_line(node)} declares a name that the loop binds")
        if self.live_out and any(isinstance(node, cst.Try) for node in self._ancestors()):
            raise AnalysisRefused(f"line {self.module.first_line(self.loop)} is in a try")

    def _ancestors(self) -> Iterator[cst.CSTNode]:
        """What the statements stand in, up to the function."""
        for node in self.module.ancestors(self.statements[0]):
            if node is self.function:
                return
            yield node

    def _is_of_other_loop(self, node: cst.Name, inside: set[cst.CSTNode]) -> bool:
        """Whether a loop beside this one binds the name that is read in it."""
        return any(
            isinstance(outer, cst.For) and outer not in inside and self.statements[0] not in self.module.inside(outer)
            and node.value in names_of(outer.target)
            for outer in self.module.ancestors(node)
        )  # fmt: skip


# -------------------------------------------------------------------------- finding them


def regions(module: SourceModule, line: int) -> Iterator[Callable[[], Region]]:
    """What may be compiled around a line, or around what calls its function: the outermost loop first.

    Each raises AnalysisRefused where it does more than compute with numbers.
    """
    return (partial(_region, module, function, loop) for function, loop in _loops(module, line))


def _region(module: SourceModule, function: cst.FunctionDef, loop: Statement) -> Region:
    """A loop with what is before and behind it that belongs to it. Raises AnalysisRefused."""
    block = list(module.parent(loop).body)  # type: ignore[union-attr]
    first = block.index(loop)
    end = len(block) if module.parent(loop) is function.body else first + 1
    leaves = any(isinstance(node, cst.Return) for node in module.inside(loop))
    if end > first + 1 and (leaves or end == first + 2):
        whole = _from(module, function, block, first, end, returns=True)
        reason = _no_end(module, whole)
        if reason is None:
            return whole
        if leaves:
            raise reason
    refuse_other_than_numbers(module, loop, returns=False)
    helpers(module, loop)
    return _from(module, function, block, first, first + 1, returns=False)


def _no_end(module: SourceModule, whole: Region) -> AnalysisRefused | None:
    """Why statements up to the end of a function cannot be compiled with it; None where they can."""
    try:
        for line in whole.statements:
            refuse_other_than_numbers(module, line, returns=True)
            helpers(module, line)
    except AnalysisRefused as reason:
        return reason
    for node in whole.nodes:
        if isinstance(node, cst.Return) and node.value is not None:
            parts = [part.value for part in node.value.elements] if isinstance(node.value, cst.Tuple) else [node.value]
            for part in parts:
                if dotted(part) and dotted(part) not in {*whole.stored, "None", "True", "False"}:
                    return AnalysisRefused(f"line {module.first_line(node)} returns what it was given")
    return None


def _loops(module: SourceModule, line: int) -> Iterator[tuple[cst.FunctionDef, Statement]]:
    """(function, statement) of the loops around a line, the outermost first; then those that call its function."""
    function = module.innermost(line, cst.FunctionDef)
    if function is None:
        return
    yield from ((function, loop) for loop in _around(module, function, line))
    for call in module.all(cst.Call):
        if helper(module, call) is function:
            caller = module.enclosing(call, cst.FunctionDef)
            if caller is not None and caller is not function:
                yield from ((caller, loop) for loop in _around(module, caller, module.first_line(call)))


def _around(module: SourceModule, function: cst.FunctionDef, line: int) -> list[Statement]:
    return [
        node for node in module.inside(function.body)
        if isinstance(node, (cst.For, cst.While, cst.SimpleStatementLine)) and module.is_on(node, line)
        and module.enclosing(node, cst.FunctionDef) is function
        and (isinstance(node, (cst.For, cst.While)) or _has_comprehension(module, node))
        and isinstance(module.parent(node), cst.IndentedBlock)
    ]  # fmt: skip


def _has_comprehension(module: SourceModule, node: cst.CSTNode) -> bool:
    return any(isinstance(inner, _COMPREHENSIONS) for inner in module.inside(node))


def _from(
    module: SourceModule,
    function: cst.FunctionDef,
    block: Iterable[cst.CSTNode],
    first: int,
    end: int,
    *,
    returns: bool,
) -> Region:
    """The statements of a block, and before them those that make new lists and numbers."""
    lines = list(block)
    loop = lines[first]
    while first and _makes_new(module, lines[first - 1]):
        first -= 1
    return Region(module, function, tuple(lines[first:end]), loop, returns)  # type: ignore[arg-type]


def _makes_new(module: SourceModule, line: cst.CSTNode) -> bool:
    """Whether it binds names to numbers and lists that it makes itself."""
    part = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(part, cst.Assign) or not all(names_of(target.target) for target in part.targets):
        return False
    try:
        refuse_other_than_numbers(module, line, returns=False)
        helpers(module, line)
    except AnalysisRefused:
        return False
    assigned = set().union(*(names_of(target.target) for target in part.targets))
    read = [node.value for node in module.inside(part.value) if isinstance(node, cst.Name) and module.context(node)]
    if not assigned.isdisjoint(read):
        return False  # it makes something else of what it was
    values = [element.value for element in part.value.elements] if isinstance(part.value, cst.Tuple) else [part.value]
    return all(_is_new(module, value) for value in values)


def _is_new(module: SourceModule, value: cst.BaseExpression) -> bool:
    if isinstance(value, (cst.Integer, cst.Float, cst.List, cst.ListComp)):
        return True
    if isinstance(value, cst.UnaryOperation):
        return isinstance(value.expression, (cst.Integer, cst.Float))
    if isinstance(value, cst.BinaryOperation):
        return isinstance(value.left, cst.List)
    if isinstance(value, cst.Call):
        is_list = is_listed(value) and dotted(value.func.value)  # type: ignore[attr-defined]
        return bool(is_list) or module.name(value) in (
            "builtins.list",
            "builtins.sorted",
            "builtins.len",
            "builtins.float",
        )
    return isinstance(value, cst.Name) and value.value in ("True", "False")
