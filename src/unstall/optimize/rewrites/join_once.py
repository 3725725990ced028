"""Loops that join a piece to what there is in every turn, and the same with the pieces in a list that is joined once.

Joining copies all that is there: of n pieces n² / 2 are copied where n would do, and backward slices as often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from unstall.optimize.rewrites.growable_buffer import Join, joins
from unstall.optimize.source.bindings import may_change_in_place
from unstall.optimize.source.edit import edited, preceded_by, put, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.names import fresh_name


@dataclass(frozen=True)
class LoopJoin:
    """A loop whose turns join to a name that nothing else in it looks at."""

    join: Join
    loop: cst.For | cst.While
    name: str


def loop_joins(module: SourceModule) -> Iterator[LoopJoin]:
    """Those in a file."""
    for join in joins(module):
        loop = module.enclosing(join.call, cst.For, cst.While)
        flattens = module.name(join.call).endswith(".append")
        if not isinstance(join.grown, cst.Name) or flattens or not isinstance(loop, (cst.For, cst.While)):
            continue
        if module.enclosing(loop, cst.FunctionDef) is join.function and _only_joined(module, join, loop):
            yield LoopJoin(join, loop, join.grown.value)


def refuse_shared(module: SourceModule, found: LoopJoin) -> None:
    """Raise AnalysisRefused where somebody else may look at what grows, or a piece may change after it is joined."""
    loop, name = found.loop, found.name
    if loop.orelse is not None or (isinstance(loop, cst.For) and loop.asynchronous is not None):
        raise AnalysisRefused("the loop has an `else`, or is asynchronous")
    if module.enclosing(loop, cst.Try) is not None:
        raise AnalysisRefused(f"an error in the loop may be handled by what reads {name}")
    for item in module.all(cst.NameItem):
        if item.name.value == name:
            raise AnalysisRefused(f"{name} is shared between functions")
    for node in module.uses(name):
        function = module.enclosing(node, cst.FunctionDef, cst.Lambda)
        if function is not found.join.function and (found.join.function is None or _is_within(module, function, found)):
            raise AnalysisRefused(f"another function reads {name}")
    added = found.join.added
    if isinstance(added, cst.Name) and any(
        may_change_in_place(module, node) for node in module.uses(added.value, loop)
    ):
        raise AnalysisRefused(f"line {module.first_line(loop)}: {added.value} is changed in place in the loop")


def once(module: SourceModule, found: LoopJoin) -> cst.Module:
    """The tree in which the loop collects the pieces, and what follows joins them."""
    parts = fresh_name(f"{found.name}_parts", {node.value for node in module.all(cst.Name)})
    call, added = found.join.call, module.code(found.join.added)
    rest = "".join(
        f", {module.code(argument.with_changes(comma=cst.MaybeSentinel.DEFAULT))}" for argument in call.args[1:]
    )
    joined = f"{module.code(call.func)}([{found.name}, *{parts}]{rest})"
    collect = statement(module.tree, f"{parts}.append({added})")
    before = statement(module.tree, f"{parts} = []")
    after = statement(module.tree, f"if {parts}:\n    {found.name} = {joined}")
    line = module.statement(call)
    assert isinstance(line, cst.SimpleStatementLine)
    kept = collect.with_changes(leading_lines=line.leading_lines, trailing_whitespace=line.trailing_whitespace)
    begun = preceded_by([before])
    return edited(module.tree, {line: put(kept), found.loop: lambda loop: cst.FlattenSentinel([*begun(loop), after])})


def _only_joined(module: SourceModule, join: Join, loop: cst.For | cst.While) -> bool:
    """Whether the loop names what grows in that one statement only, which stands on a line of its own."""
    assert isinstance(join.grown, cst.Name)
    line = module.statement(join.call)
    named = module.uses(join.grown.value, loop)
    is_alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    return is_alone and len(named) == 2 and all(line in module.ancestors(node) for node in named)


def _is_within(module: SourceModule, function: cst.CSTNode | None, found: LoopJoin) -> bool:
    """Whether a function is written inside the one that the loop is in."""
    return function is not None and any(around is found.join.function for around in module.ancestors(function))
