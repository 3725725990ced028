"""Statements over numbers, as statements over arrays: every branch is computed, conditions select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from unstall.optimize.source.bindings import only_names
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import walk
from unstall.optimize.source.names import fresh_name
from unstall.optimize.vectorize.expressions import Expressions
from unstall.optimize.vectorize.syntax import (
    Step,
    branches,
    call_of,
    elements,
    is_text,
    names_in,
    single_target,
    source,
)

_ATOMS = (cst.Name, cst.BaseNumber, cst.BaseString)


@dataclass
class Block:
    """The array form of a block of statements, as it is built line by line."""

    expressions: Expressions
    lines: list[str] = field(default_factory=list)
    returns: list[tuple[cst.BaseExpression | None, cst.BaseExpression]] = field(default_factory=list)
    """(condition, value) of each return statement, in order; no condition: the rest."""
    taken: set[str] = field(default_factory=set)
    full_shape: set[str] = field(default_factory=set)
    """Names whose arrays surely have the shape of the whole nest: they derive from a cell that was read."""

    def run(self, body: Sequence[Step], mask: cst.BaseExpression | None = None) -> None:
        """Append the array form of statements that are reached where ``mask`` holds. Raises AnalysisRefused."""
        for step in body:
            target = single_target(step)
            if self.returns and self.returns[-1][0] is None:
                return  # nothing after an unconditional return is reached
            if isinstance(step, cst.Return) and step.value is not None:
                self.returns.append((mask, self.expressions(step.value)))
            elif isinstance(step, cst.If):
                self._if(step, mask)
            elif isinstance(step, cst.Assign) and target is not None:
                self._assign(target, self.expressions(step.value), branch=mask is not None)
            elif isinstance(step, cst.AugAssign) and isinstance(step.target, cst.Name):
                self._assign(step.target, self.expressions.augmented(step), branch=mask is not None)
            elif not is_text(step):
                line = self.expressions.module.first_line(step)
                raise AnalysisRefused(f"line {line}: {type(step).__name__} has no equal on arrays")

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression, *, branch: bool) -> None:
        """Names set to what is an expression over arrays already."""
        if not only_names(target):
            raise self.expressions.cannot(target, "is no name, and is assigned to")
        names, now = names_in(target), self.expressions.names
        new = [self.name(name, fresh=branch or self._is_awaited(now.get(name))) for name in names]
        if self.has_full_shape(value):
            self.full_shape.update(new)
        self.lines.append(f"{', '.join(new)} = {source(value)}")
        now.update(zip(names, new))

    def has_full_shape(self, node: cst.BaseExpression) -> bool:
        """Whether an expression over arrays surely has the shape of the whole nest."""
        return not self.full_shape.isdisjoint(names_in(node)) or any(
            isinstance(inner, cst.Attribute) and inner.attr.value == "asarray" for inner in walk(node)
        )

    def _is_awaited(self, name: str | None) -> bool:
        """Whether a return statement that was met refers to this array: then its name must not be given away."""
        return name in names_in(*(part for returned in self.returns for part in returned if part is not None))

    def name(self, wanted: str, *, fresh: bool) -> str:
        """A name of the array form; a fresh one inside a branch, where the old value is still needed."""
        if not fresh:
            self.taken.add(wanted)
            return wanted
        name = fresh_name(wanted, self.taken)
        self.taken.add(name)
        return name

    def _if(self, decision: cst.If, mask: cst.BaseExpression | None) -> None:
        condition = self.expressions.condition(decision.test)
        is_simple = isinstance(condition, cst.Comparison) and all(
            isinstance(part, _ATOMS) for part in walk(condition)[1:] if isinstance(part, cst.BaseExpression)
        )
        if not is_simple:
            mask_name = self.name("mask", fresh=True)
            self.lines.append(f"{mask_name} = {source(condition)}")
            condition = cst.Name(mask_name)
        numpy, names = self.expressions.numpy, self.expressions.names
        before = dict(names)
        taken, other = branches(decision)
        self.run(taken, _both(numpy, mask, condition))
        yes = dict(names)
        names.clear()
        names.update(before)
        if other:
            self.run(other, _both(numpy, mask, call_of(f"{numpy}.logical_not", condition)))
        self._merge(condition, yes, dict(names), branch=mask is not None)

    def _merge(self, condition: cst.BaseExpression, yes: dict[str, str], no: dict[str, str], *, branch: bool) -> None:
        """After a branch, each name that it changed is chosen by the condition."""
        names = self.expressions.names
        for name in [*yes, *(name for name in no if name not in yes)]:
            if_true, if_false = yes.get(name), no.get(name)
            if if_true == if_false:
                continue
            if if_true is None or if_false is None:  # set in one branch only: where it was not, nothing may read it
                names[name] = if_true or if_false or name
                continue
            now = self.name(name, fresh=branch)
            self.lines.append(f"{now} = {self.expressions.numpy}.where({source(condition)}, {if_true}, {if_false})")
            names[name] = now
            if {if_true, if_false} & self.full_shape:
                self.full_shape.add(now)


def chosen(numpy: str, returns: Sequence[tuple[cst.BaseExpression | None, cst.BaseExpression]]) -> list[str]:
    """The lines by which a function of several returns returns what its conditions choose."""
    widths = {len(value.elements) if isinstance(value, cst.Tuple) else 0 for _, value in returns}
    if len(widths) != 1 or not returns:
        raise AnalysisRefused("it returns different numbers of values")
    *earlier, (_, last) = [(mask, [source(part) for part in elements(value)]) for mask, value in returns]
    if not earlier:
        return [f"return {', '.join(last)}"]
    masks = ", ".join(source(mask) for mask, _ in earlier if mask is not None)
    selections = []
    for index, rest in enumerate(last):
        values = ", ".join(parts[index] for _, parts in earlier)
        selections.append(f"{numpy}.select(cases, [{values}], {rest})")
    if len(selections) == 1:
        return [f"cases = [{masks}]", f"return {selections[0]}"]
    return [f"cases = [{masks}]", "return (", *(f"    {selection}," for selection in selections), ")"]


def _both(numpy: str, mask: cst.BaseExpression | None, condition: cst.BaseExpression) -> cst.BaseExpression:
    return condition if mask is None else call_of(f"{numpy}.logical_and", mask, condition)
