"""A loop that calls a model once an item, read as three parts: what is made of an item, the call, and what follows.

The first two may run ahead of the third, for many items at once, when nothing that follows matters to them and they do
nothing but compute. That is a reading of the source, which the comparison then checks by running it, see
:mod:`unstall.child.trial.batched_calls`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.batching.comprehensions import unrolled
from unstall.optimize.source.effects import TORCH_CONTEXTS, Effect, effect_of
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted, method_name, root
from unstall.optimize.source.places import CallSite
from unstall.optimize.source.purity import is_stored, method_of, names
from unstall.optimize.thresholds import BATCHED_DEPTH

_LOAD, _STORE = ExpressionContext.LOAD, ExpressionContext.STORE
_AROUND = (
    cst.Assign, cst.AnnAssign, cst.AugAssign, cst.AssignTarget, cst.Expr, cst.Arg, cst.Call, cst.Attribute,
    cst.Subscript, cst.SubscriptElement, cst.Index, cst.Slice, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison,
    cst.ComparisonTarget, cst.Tuple, cst.List, cst.Element, cst.FormattedString, cst.FormattedStringExpression,
)  # fmt: skip
"""What may stand between the call and its statement: in each of these the call is always made, and once."""
_COMPREHENSIONS = (cst.CompFor, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_LEAVES = (cst.Return, cst.Break, cst.Yield, cst.Await, cst.Global, cst.Nonlocal, cst.Del, cst.FunctionDef,
           cst.ClassDef, cst.Asynchronous)  # fmt: skip
_DISPLAYS = (cst.List, cst.Tuple, cst.ListComp, cst.Set, cst.Dict)
_CONSTANTS = (cst.BaseNumber, cst.BaseString)


class NotInLoop(AnalysisRefused):
    """The call is in no loop of its function: a caller may have one."""


@dataclass(frozen=True)
class BatchableLoop:
    """A loop, taken apart. Statements are those of the loop's body, or of the ``with`` in it that holds the call."""

    module: SourceModule
    """What it is in: a comprehension is a loop there."""
    loop: cst.For
    within: cst.With | None
    """``with torch.no_grad():`` and its like around the call, directly in the loop."""
    statement: cst.SimpleStatementLine
    """The statement that holds the call."""
    call: cst.Call
    inputs: tuple[cst.Arg, ...]
    """Arguments that differ from item to item."""
    needed: tuple[str, ...]
    """Names that are set for the item and read by what follows."""
    sized: tuple[str, ...]
    """Source of what is looped over, as far as only the running program knows whether it is at hand as a whole."""


def split_loop(module: SourceModule, site: CallSite) -> BatchableLoop:
    """The loop around a call, if what comes before the call may run ahead. Raises AnalysisRefused."""
    call = module.call(site) if site.span is not None else None
    if call is None:
        raise AnalysisRefused("the interpreter does not know the columns of the call")
    return _Splitter(unrolled(module, call), call).split()


class _Splitter:
    """Takes the loop around one call apart."""

    def __init__(self, module: SourceModule, call: cst.Call):
        self.module, self.call = module, call
        self.statement = self._statement()
        self.loop, self.within = self._loop()
        self.prepare, self.following = self._parts()
        target = self.loop.target
        if any(
            isinstance(inner, (cst.Attribute, cst.Subscript, cst.StarredElement)) for inner in module.inside(target)
        ):
            self._refuse(self.loop, "the loop sets more than names")
        self.item_names = set(names(module, [target, *self.prepare], _STORE))
        """Names that belong to an item."""

    def split(self) -> BatchableLoop:
        """The loop's parts, if they may be made apart. Raises AnalysisRefused."""
        inputs = self._inputs()
        self._check_loop()
        self._check_prepare()
        self._check_items_independent()
        needed_names = self._names_needed_later([*self.prepare, *(arg.value for arg in inputs)])
        sized = self._sized(self.loop.iter)
        return BatchableLoop(
            self.module, self.loop, self.within, self.statement, self.call, inputs, needed_names, sized
        )

    def _refuse(self, node: cst.CSTNode, reason: str) -> None:
        raise AnalysisRefused(f"line {self.module.first_line(node)}: {reason}")

    # ------------------------------------------------------------------ the parts

    def _statement(self) -> cst.SimpleStatementLine:
        """The statement around the call, in which it is made exactly once."""
        for node in self.module.ancestors(self.call):
            if isinstance(node, cst.SimpleStatementLine):
                return node
            if isinstance(node, (cst.Return, cst.WithItem, cst.Lambda)):
                break
            if not isinstance(node, _AROUND) or (isinstance(node, cst.Arg) and node.star):
                kind = "comprehension" if isinstance(node, _COMPREHENSIONS) else "condition"
                self._refuse(self.call, f"the call is in a {kind}")
        raise NotInLoop("it is in no loop")

    def _loop(self) -> tuple[cst.For, cst.With | None]:
        around = self._holder(self.statement)
        within = around if isinstance(around, cst.With) and all(map(self._is_context, around.items)) else None
        around = self._holder(within) if within is not None else around
        if isinstance(around, cst.For) and around.asynchronous is None:
            if around.orelse is not None:
                self._refuse(around, "the loop has an else")
            return around, within
        for node in self.module.ancestors(self.statement):
            if isinstance(node, (cst.FunctionDef, cst.Lambda)):
                break
            if isinstance(node, (cst.For, cst.While)):
                self._refuse(self.statement, "whether the model is called depends on something")
        raise NotInLoop("it is in no loop")

    def _holder(self, statement: cst.CSTNode) -> cst.CSTNode | None:
        """The compound statement whose block holds a statement."""
        block = self.module.parent(statement)
        return self.module.parent(block) if isinstance(block, cst.IndentedBlock) else None

    def _is_context(self, item: cst.WithItem) -> bool:
        """A context that only sets how torch computes."""
        name = self.module.name(item.item) if isinstance(item.item, cst.Call) else ""
        return item.asname is None and name.rpartition(".")[2] in TORCH_CONTEXTS

    def _parts(self) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
        """(what comes before the call's statement, what follows it)."""
        before, after = self._around(self.within or self.loop, self.statement)
        if self.within is not None:
            outer_before, outer_after = self._around(self.loop, self.within)
            before, after = outer_before + before, after + outer_after
        return before, after

    def _around(self, block: Any, statement: cst.CSTNode) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
        """The statements of a block before and after one of them, each on a line of its own."""
        lines = list(block.body.body)
        if any(isinstance(line, cst.SimpleStatementLine) and len(line.body) > 1 for line in lines):
            self._refuse(block, "several statements of the loop are on a line")
        return lines[: lines.index(statement)], lines[lines.index(statement) + 1 :]

    def _inputs(self) -> tuple[cst.Arg, ...]:
        """The arguments that differ from item to item."""
        if self.item_names & set(names(self.module, [self.call.func], _LOAD)):
            self._refuse(self.call, "each item has a model of its own")
        inputs = tuple(arg for arg in self.call.args if self.item_names & set(names(self.module, [arg.value], _LOAD)))
        if any(arg.star for arg in inputs):
            self._refuse(self.call, "the arguments are packed")
        if not inputs:
            self._refuse(self.call, "what the model is given does not come from the loop")
        return inputs

    def _names_needed_later(self, ahead: Iterable[cst.CSTNode]) -> tuple[str, ...]:
        """The item's names that are read anywhere but in what runs ahead."""
        scope = self.module.enclosing(self.loop, cst.FunctionDef) or self.module.tree
        inside = {node for part in ahead for node in self.module.inside(part)}
        names_read = (
            node.value
            for node in self.module.inside(scope)
            if isinstance(node, cst.Name) and node not in inside
            and self.module.context(node) in (_LOAD, ExpressionContext.DEL)
        )  # fmt: skip
        return tuple(name for name in dict.fromkeys(names_read) if name in self.item_names)

    def _sized(self, looped: cst.BaseExpression) -> tuple[str, ...]:
        """What must have a length for the loop to be known as a whole, beyond what the source shows."""
        if isinstance(looped, _DISPLAYS):
            return ()
        if isinstance(looped, (cst.Name, cst.Attribute, cst.Subscript)):
            return (self.module.code(looped),)
        if isinstance(looped, cst.Call):
            effect = self._effect(looped)
            if effect & Effect.SIZED:
                return ()
            if effect & Effect.WRAPS:
                values = [arg.value for arg in looped.args if not arg.keyword and not isinstance(arg.value, _CONSTANTS)]
                return tuple(source for value in values for source in self._sized(value))
        self._refuse(looped, f"{self.module.code(looped)} may be a stream, which is not known ahead")
        return ()

    def _effect(self, call: cst.Call) -> Effect:
        """What a call may do, by the name of its function where that is known, else by its last part."""
        method = method_name(call)
        return effect_of(self.module.name(call) or f".{method}")

    # ------------------------------------------------------------------ what may run ahead

    def _check_loop(self) -> None:
        """The loop as a whole neither hands out results as it runs nor takes its time."""
        for node in self.module.inside(self.loop):
            if isinstance(node, (cst.Yield, cst.Await)):
                self._refuse(node, "results are handed out while the loop runs")
            if isinstance(node, cst.Call) and self._effect(node) & Effect.CLOCK:
                self._refuse(node, "the loop takes the time of its turns")

    def _check_prepare(self) -> None:
        """What is made of an item only computes."""
        names_set = set(names(self.module, [self.loop.target], _STORE))
        for statement in self.prepare:
            for node in self.module.inside(statement):
                self._check_node(node, names_set)
            unset = [name for name in self._read_first(statement) if name in self.item_names - names_set]
            if unset:
                self._refuse(statement, f"{unset[0]} comes from the item before")
            names_set |= set(names(self.module, [statement], _STORE))

    def _check_node(self, node: cst.CSTNode, names_set: set[str]) -> None:
        if isinstance(node, _LEAVES):
            self._refuse(node, "what is made of an item has an effect on the rest")
        if isinstance(node, cst.Call) and self._effect(node) & Effect.ORDERED:
            self._refuse(node, f"{self.module.code(node.func)} may not be called ahead")
        stored = isinstance(node, (cst.Attribute, cst.Subscript)) and is_stored(self.module, node)
        if stored and root(node) not in names_set:
            self._refuse(node, f"{self.module.code(node)} is changed")
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) and root(node.value.func) not in names_set:
            self._refuse(node, f"{self.module.code(node.value.func)} is called for its effect")

    def _read_first(self, statement: cst.CSTNode) -> list[str]:
        """Names that a statement reads and does not set for itself, as an ``if`` or a ``with`` does."""
        names_read = names(self.module, [statement], _LOAD)
        if not isinstance(statement, cst.SimpleStatementLine):
            own = set(names(self.module, [statement], _STORE))
            return [name for name in names_read if name not in own]
        small = statement.body[0]
        if isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
            return [small.target.value, *names_read]
        return names_read

    def _check_items_independent(self) -> None:
        """Nothing that follows the call changes what the next items are made from."""
        imports = self.module.all(cst.ImportAlias)
        modules = {(alias.evaluated_alias or alias.evaluated_name).partition(".")[0] for alias in imports}
        paths_read = {
            path
            for path in self._paths_read([self.loop.iter, *self.prepare, self.call])
            if path.partition(".")[0] not in self.item_names | modules
        }
        cls = self.module.enclosing(self.loop, cst.ClassDef)
        for changed in self._changed([self.statement, *self.following], set(self.module.inside(self.call)), cls):
            if changed.partition(".")[0] not in modules:
                for path in paths_read:
                    if _covers(changed, path) or _covers(path, changed):
                        raise AnalysisRefused(
                            f"{changed} may change from item to item, and {path} is needed for the next"
                        )

    def _paths_read(self, nodes: Sequence[cst.CSTNode]) -> Iterator[str]:
        """The dotted names that are read in these nodes, whole."""
        for node in (inner for part in nodes for inner in self.module.inside(part)):
            if isinstance(node, (cst.Name, cst.Attribute)) and self.module.context(node) is _LOAD and dotted(node):
                above = self.module.parent(node)
                if not (isinstance(above, cst.Attribute) and above.value is node):
                    yield dotted(node)

    def _changed(
        self,
        nodes: Iterable[cst.CSTNode],
        skipped: Collection[cst.CSTNode],
        cls: cst.ClassDef | None,
        depth: int = 0,
    ) -> Iterator[str]:
        """The dotted names that are set in these nodes, or of which they call a method: that may change them."""
        for node in (inner for part in nodes for inner in self.module.inside(part) if inner not in skipped):
            if self.module.context(node) in (_STORE, ExpressionContext.DEL):
                changed = node.value if isinstance(node, cst.Subscript) else node
                yield dotted(changed) or root(changed)
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                receiver = dotted(node.func.value)
                method = method_of(cls, node.func.attr.value) if cls is not None and receiver == "self" else None
                if method is not None and depth < BATCHED_DEPTH:
                    yield from self._changed([method.body], (), cls, depth + 1)
                elif receiver or isinstance(node.func.value, (cst.Subscript, cst.Attribute)):
                    yield receiver or root(node.func.value)


def _covers(prefix: str, part: str) -> bool:
    return part == prefix or part.startswith(prefix + ".")
