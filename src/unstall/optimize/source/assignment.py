"""Definite assignment: which names of a function are bound wherever a statement of it begins."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.bindings import names_of
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.purity import is_of_comprehension


def bound_before(
    module: SourceModule, function: cst.FunctionDef, statement: cst.CSTNode, *, loops_run: bool = False
) -> set[str]:
    """The names that are bound wherever a statement begins. ``loops_run``: if no loop before is left at once."""
    params = function.params
    bound = {param.name.value for param in (*params.params, *params.posonly_params, *params.kwonly_params)}
    inner = statement
    flow = Flow(module, function, set(), loops_run=loops_run)
    for outer in module.ancestors(statement):
        if isinstance(outer, cst.IndentedBlock):
            before = outer.body[: outer.body.index(inner)]  # type: ignore[arg-type]
            bound |= flow.through(before, set())
        elif isinstance(outer, cst.For) and inner is outer.body:
            bound |= names_of(outer.target)
        elif isinstance(outer, cst.With) and inner is outer.body:
            bound |= _opened(outer)
        if outer is function:
            break
        inner = outer
    return bound


class Flow:
    """Follows statements: which names are bound after them in any case, and which are read before."""

    def __init__(self, module: SourceModule, function: cst.FunctionDef, of: set[str], *, loops_run: bool = False):
        self.module = module
        self.of = of
        self.loops_run = loops_run
        self.early: set[str] = set()
        """Those of these names that may be read unbound."""
        self.every = {node.value for node in module.inside(function) if isinstance(node, cst.Name)}

    def through(self, statements: Iterable[cst.CSTNode], bound: set[str]) -> set[str]:
        """The names that are bound after statements before which ``bound`` are."""
        bound = {*bound}
        for line in statements:
            if isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
                for part in line.body:
                    bound = self._after(part, bound)
            elif isinstance(line, cst.If):
                self._reads(line.test, bound)
                other = line.orelse
                branches = [self._body(line.body, bound)]
                branches.append(
                    self.through([other], bound) if isinstance(other, cst.If)
                    else self._body(other.body, bound) if other is not None
                    else bound
                )  # fmt: skip
                bound = branches[0] & branches[1]
            elif isinstance(line, cst.For):
                self._reads(line.iter, bound)
                after = self._body(line.body, bound | names_of(line.target))
                bound |= after if self.loops_run else set()
            elif isinstance(line, cst.While):
                self._reads(line.test, bound)
                after = self._body(line.body, bound)
                bound |= after if self.loops_run else set()
            elif isinstance(line, cst.With):
                bound = self._body(line.body, bound | _opened(line))
        return bound

    def _body(self, body: cst.BaseSuite, bound: set[str]) -> set[str]:
        return self.through(body.body, bound) if isinstance(body, cst.IndentedBlock) else self.through([body], bound)

    def _after(self, part: cst.CSTNode, bound: set[str]) -> set[str]:
        self._reads(part, bound)
        if isinstance(part, (cst.Return, cst.Break, cst.Continue, cst.Raise)):
            return self.every  # nothing comes after it
        if isinstance(part, cst.AugAssign) and isinstance(part.target, cst.Name):
            self._read(part.target.value, bound)
        if isinstance(part, cst.Assign):
            return bound.union(*(names_of(target.target) for target in part.targets))
        if isinstance(part, cst.AnnAssign) and part.value is not None:
            return bound | names_of(part.target)
        return bound

    def _reads(self, node: cst.CSTNode, bound: set[str]) -> None:
        for inner in self.module.inside(node) if self.of else ():
            if not isinstance(inner, cst.Name) or self.module.context(inner) is not ExpressionContext.LOAD:
                continue
            if not is_of_comprehension(self.module, inner):
                self._read(inner.value, bound)

    def _read(self, name: str, bound: set[str]) -> None:
        if name in self.of and name not in bound:
            self.early.add(name)


def _opened(block: cst.With) -> set[str]:
    """The names that a ``with`` binds."""
    return {name for item in block.items if item.asname is not None for name in names_of(item.asname.name)}
