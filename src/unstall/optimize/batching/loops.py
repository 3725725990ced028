"""A loop that calls a model once an item, read as three parts: what is made of an item, the call, and what follows.

The first two may run ahead of the third, for many items at once, when nothing that follows matters to them and they do
nothing but compute. That is a reading of the source, which the comparison then checks by running it, see
:mod:`unstall.optimize.child.batched_calls`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from unstall.optimize.source.effects import TORCH_CONTEXTS, Effect, effect_of
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.places import CallSite
from unstall.optimize.source.python_ast import ancestors, dotted, names, parents_of, root

_AROUND = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Call, ast.keyword, ast.Attribute, ast.Subscript,
           ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.List, ast.FormattedValue, ast.JoinedStr)  # fmt: skip
"""What may stand between the call and its statement: in each of these the call is always made, and once."""
_LEAVES = (ast.Return, ast.Break, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete,
           ast.FunctionDef, ast.ClassDef, ast.AsyncFor, ast.AsyncWith)  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MAX_DEPTH = 4


class NotInLoop(AnalysisRefused):
    """The call is in no loop of its function: a caller may have one."""


@dataclass(frozen=True)
class BatchableLoop:
    """A loop, taken apart. Statements are those of the loop's body, or of the ``with`` in it that holds the call."""

    loop: cst.For
    within: cst.With | None
    """``with torch.no_grad():`` and its like around the call, directly in the loop."""
    statement: cst.SimpleStatementLine
    """The statement that holds the call."""
    call: cst.Call
    inputs: tuple[cst.Arg, ...]
    """Arguments that differ from item to item."""
    kept: tuple[str, ...]
    """Names that are set for the item and read by what follows."""
    sized: tuple[str, ...]
    """Source of what is looped over, as far as only the running program knows whether it is at hand as a whole."""


def split_loop(module: SourceModule, site: CallSite) -> BatchableLoop:
    """The loop around a call, if what comes before the call may run ahead. Raises AnalysisRefused."""
    node = module.call(site) if site.span is not None else None
    if node is None:
        raise AnalysisRefused("the interpreter does not know the columns of the call")
    return _Splitter(module, node).split()


class _Splitter:
    """Takes the loop around one call apart."""

    def __init__(self, module: SourceModule, node: cst.Call):
        self.module, self.node = module, node
        self.tree, self.parents = module.ast, parents_of(module.ast)
        self.call = module.ast_node(node, ast.Call)
        self.statement = self._statement()
        self.loop, self.within = self._loop()
        self.prepare, self.rest = self._parts()
        if any(isinstance(one, (ast.Attribute, ast.Subscript, ast.Starred)) for one in ast.walk(self.loop.target)):
            raise AnalysisRefused(f"line {self.loop.lineno}: the loop sets more than names")
        self.own = set(names([self.loop.target, *self.prepare], ast.Store))
        """Names that belong to an item."""

    def split(self) -> BatchableLoop:
        """The loop's parts, if they may be made apart. Raises AnalysisRefused."""
        inputs = self._inputs()
        self._check_loop()
        self._check_prepare()
        self._check_apart()
        loop = self.module.node(self.loop, cst.For)
        within = self.module.node(self.within, cst.With) if self.within is not None else None
        line = self.module.statement(self.node)
        if not isinstance(line, cst.SimpleStatementLine):
            raise AnalysisRefused(f"line {self.loop.lineno}: the call is in the head of a block")
        for block in (loop, within):
            if block is not None and not _has_lines(block):
                raise AnalysisRefused(f"line {self.loop.lineno}: several statements of the loop are on a line")
        varying = [value for _, value in inputs]
        return BatchableLoop(
            loop, within, line, self.node, tuple(arg for arg, _ in inputs), self._kept([*self.prepare, *varying]),
            self._sized(self.loop.iter),
        )  # fmt: skip

    # ------------------------------------------------------------------ the parts

    def _statement(self) -> ast.stmt:
        """The statement around the call, in which it is made exactly once."""
        node: ast.AST = self.call
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
            if isinstance(node, (ast.Return, ast.withitem, ast.Lambda)):
                raise NotInLoop("it is in no loop")
            if not isinstance(node, _AROUND):
                kind = "a comprehension" if isinstance(node, (ast.comprehension, ast.ListComp)) else "a condition"
                raise AnalysisRefused(f"line {self.call.lineno}: the call is in {kind}")
        return node

    def _loop(self) -> tuple[ast.For, ast.With | None]:
        around = self.parents[self.statement]
        within = around if isinstance(around, ast.With) and all(map(self._is_context, around.items)) else None
        around = self.parents[within] if within is not None else around
        if isinstance(around, ast.For):
            if around.orelse or around.type_comment:
                raise AnalysisRefused(f"line {around.lineno}: the loop has an else")
            return around, within
        for node in ancestors(self.parents, self.statement):
            if isinstance(node, _FUNCTIONS):
                break
            if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
                raise AnalysisRefused(f"line {self.statement.lineno}: whether the model is called depends on something")
        raise NotInLoop("it is in no loop")

    def _is_context(self, item: ast.withitem) -> bool:
        """A context that only sets how torch computes."""
        made = item.context_expr
        name = self.module.resolve(dotted(made.func)) if isinstance(made, ast.Call) else ""
        return item.optional_vars is None and name.rpartition(".")[2] in TORCH_CONTEXTS

    def _parts(self) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """(what comes before the call's statement, what follows it)."""
        body = self.loop.body
        if self.within is None:
            index = body.index(self.statement)
            return body[:index], body[index + 1 :]
        index, inner = body.index(self.within), self.within.body.index(self.statement)
        return body[:index] + self.within.body[:inner], self.within.body[inner + 1 :] + body[index + 1 :]

    def _inputs(self) -> list[tuple[cst.Arg, ast.expr]]:
        """The arguments that differ from item to item, in both trees."""
        if self.own & set(names([self.call.func], ast.Load)):
            raise AnalysisRefused(f"line {self.call.lineno}: each item has a model of its own")
        read: list[ast.expr] = [*self.call.args, *(keyword.value for keyword in self.call.keywords)]
        read.sort(key=lambda one: (one.lineno, one.col_offset))
        found = [(arg, one) for arg, one in zip(self.node.args, read) if self.own & set(names([one], ast.Load))]
        if any(arg.star for arg, _ in found):
            raise AnalysisRefused(f"line {self.call.lineno}: the arguments are packed")
        if not found:
            raise AnalysisRefused(f"line {self.call.lineno}: what the model is given does not come from the loop")
        return found

    def _kept(self, ahead: list[ast.AST]) -> tuple[str, ...]:
        """The item's names that are read anywhere but in what runs ahead."""
        scope = next((one for one in ancestors(self.parents, self.loop) if isinstance(one, _FUNCTIONS[:2])), self.tree)
        inside = {node for part in ahead for node in ast.walk(part)}
        read = [
            node.id
            for node in ast.walk(scope)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store) and node not in inside
        ]
        return tuple(name for name in dict.fromkeys(read) if name in self.own)

    def _sized(self, looped: ast.expr) -> tuple[str, ...]:
        """What must have a length for the loop to be known as a whole, beyond what the source shows."""
        if isinstance(looped, (ast.List, ast.Tuple, ast.ListComp, ast.Set, ast.Dict)):
            return ()
        if isinstance(looped, (ast.Name, ast.Attribute, ast.Subscript)):
            return (ast.unparse(looped),)
        if isinstance(looped, ast.Call):
            effect = self._effect(looped)
            if effect & Effect.SIZED:
                return ()
            if effect & Effect.WRAPS:
                return tuple(
                    one for arg in looped.args if not isinstance(arg, ast.Constant) for one in self._sized(arg)
                )
        raise AnalysisRefused(f"line {looped.lineno}: {ast.unparse(looped)} may be a stream, which is not known ahead")

    def _effect(self, call: ast.Call) -> Effect:
        """What a call may do, by the name of its function where that is known, else by its last part."""
        if isinstance(call.func, ast.Name):
            bound = self.module.imports.get(call.func.id)
            return effect_of(bound or f"builtins.{call.func.id}") | effect_of(bound or call.func.id)
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return effect_of(self.module.resolve(dotted(call.func)) or f".{last}")

    # ------------------------------------------------------------------ what may run ahead

    def _check_loop(self) -> None:
        """The loop as a whole neither hands out results as it runs nor takes its time."""
        for node in ast.walk(self.loop):
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
                raise AnalysisRefused(f"line {node.lineno}: results are handed out while the loop runs")
            if isinstance(node, ast.Call) and self._effect(node) & Effect.CLOCK:
                raise AnalysisRefused(f"line {node.lineno}: the loop takes the time of its turns")

    def _check_prepare(self) -> None:
        """What is made of an item only computes."""
        known: set[str] = set(names([self.loop.target], ast.Store))
        for statement in self.prepare:
            for node in ast.walk(statement):
                self._check_node(node, known)
            early = [name for name in _read_first(statement) if name in self.own - known]
            if early:
                raise AnalysisRefused(f"line {statement.lineno}: {early[0]} comes from the item before")
            known |= set(names([statement], ast.Store))

    def _check_node(self, node: Any, known: set[str]) -> None:
        if isinstance(node, _LEAVES):
            raise AnalysisRefused(f"line {node.lineno}: what is made of an item has an effect on the rest")
        if isinstance(node, ast.Call) and self._effect(node) & Effect.ORDERED:
            raise AnalysisRefused(f"line {node.lineno}: {ast.unparse(node.func)} may not be called ahead")
        stored = isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
        if stored and root(node) not in known:
            raise AnalysisRefused(f"line {node.lineno}: {ast.unparse(node)} is changed")
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and root(node.value.func) not in known:
            raise AnalysisRefused(f"line {node.lineno}: {ast.unparse(node.value.func)} is called for its effect")

    def _check_apart(self) -> None:
        """Nothing that follows the call changes what the next items are made from."""
        modules = _imported(self.tree)
        parts = [self.loop.iter, *self.prepare, self.call]
        read = {
            path for part in parts for path in _paths_read(part) if path.partition(".")[0] not in self.own | modules
        }
        cls = next((one for one in ancestors(self.parents, self.loop) if isinstance(one, ast.ClassDef)), None)
        for changed in _changed_names([self.statement, *self.rest], set(ast.walk(self.call)), cls):
            if changed.partition(".")[0] in modules:
                continue
            for path in read:
                if _covers(changed, path) or _covers(path, changed):
                    raise AnalysisRefused(f"{changed} may change from item to item, and {path} is needed for the next")


def _has_lines(block: cst.For | cst.With) -> bool:
    """Whether each statement of a block stands on lines of its own."""
    lines = block.body.body if isinstance(block.body, cst.IndentedBlock) else ()
    return bool(lines) and not any(isinstance(one, cst.SimpleStatementLine) and len(one.body) > 1 for one in lines)


def _read_first(statement: ast.stmt) -> list[str]:
    """Names that a statement reads and does not set for itself (as comprehensions and ``with`` do)."""
    read = names([statement], ast.Load)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id, *read]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
        bound = {name for node in ast.walk(statement) if isinstance(node, ast.comprehension)
                 for name in names([node.target], ast.Store)}  # fmt: skip
        return [name for name in read if name not in bound]
    return [name for name in read if name not in set(names([statement], ast.Store))]


def _covers(whole: str, part: str) -> bool:
    return part == whole or part.startswith(whole + ".")


def _paths_read(node: ast.AST) -> Iterator[str]:
    """The dotted names that are read in a node, whole."""
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        path = dotted(node)
        if path:
            yield path
            return
    for one in ast.iter_child_nodes(node):
        yield from _paths_read(one)


def _changed_names(
    statements: Iterable[ast.AST], skipped: Collection[ast.AST], cls: ast.ClassDef | None, depth: int = 0
) -> Iterator[str]:
    """The dotted names that statements set, or call a method of: that may change it."""
    for node in (one for statement in statements for one in ast.walk(statement) if one not in skipped):
        set_or_deleted = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        if set_or_deleted and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            yield dotted(node.value if isinstance(node, ast.Subscript) else node) or root(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver = dotted(node.func.value)
            method = _method(cls, node.func.attr) if receiver == "self" else None
            if method is not None and depth < _MAX_DEPTH:
                yield from _changed_names(method.body, (), cls, depth + 1)
            elif receiver or isinstance(node.func.value, (ast.Subscript, ast.Attribute)):
                yield receiver or root(node.func.value)


def _method(cls: ast.ClassDef | None, name: str) -> ast.FunctionDef | None:
    body = cls.body if cls is not None else []
    return next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def _imported(tree: ast.Module) -> set[str]:
    """The names that a module's imports bind."""
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
