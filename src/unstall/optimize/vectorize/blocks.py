"""Statements over numbers, as statements over arrays: every branch is computed, conditions select."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.names import fresh_name
from unstall.optimize.vectorize.expressions import Expressions


@dataclass
class Block:
    """The array form of a block of statements, as it is built line by line."""

    expressions: Expressions
    lines: list[str] = field(default_factory=list)
    returns: list[tuple[ast.expr | None, ast.expr]] = field(default_factory=list)
    """(condition, value) of each return statement, in order; no condition: the rest."""
    taken: set[str] = field(default_factory=set)
    full_shape: set[str] = field(default_factory=set)
    """Names whose arrays surely have the shape of the whole nest: they derive from a cell that was read."""

    def run(self, statements: list[ast.stmt], mask: ast.expr | None = None) -> None:
        """Append the array form of statements that are reached where ``mask`` holds. Raises AnalysisRefused."""
        for statement in statements:
            if self.returns and self.returns[-1][0] is None:
                return  # nothing after an unconditional return is reached
            if isinstance(statement, ast.Return):
                if statement.value is None:
                    raise AnalysisRefused(f"line {statement.lineno}: returns nothing")
                self.returns.append((mask, self.expressions(statement.value)))
            elif isinstance(statement, ast.If):
                self._if(statement, mask)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self.assign(statement.targets[0], statement.value, branch=mask is not None)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                value = ast.BinOp(ast.Name(statement.target.id, ast.Load()), statement.op, statement.value)
                ast.copy_location(value, statement)
                self.assign(statement.target, value, branch=mask is not None)
            elif isinstance(statement, ast.Pass) or _is_text(statement):
                continue
            else:
                raise AnalysisRefused(f"line {statement.lineno}: {type(statement).__name__} has no equal on arrays")

    def assign(self, target: ast.expr, value: ast.expr, *, branch: bool) -> None:
        """``target = value`` for names."""
        names = [target] if isinstance(target, ast.Name) else list(getattr(target, "elts", []))
        if not names or not all(isinstance(name, ast.Name) for name in names):
            raise AnalysisRefused(f"line {target.lineno}: assigns to {ast.unparse(target)}")
        translated = self.expressions(value)
        new = [
            self.name(name.id, fresh=branch or self._is_awaited(self.expressions.names.get(name.id)))  # type: ignore[attr-defined]
            for name in names
        ]
        if self.has_full_shape(translated):
            self.full_shape.update(new)
        self.lines.append(f"{', '.join(new)} = {source(translated)}")
        for name, now in zip(names, new):
            self.expressions.names[name.id] = now  # type: ignore[attr-defined]

    def has_full_shape(self, node: ast.expr) -> bool:
        """Whether an expression over arrays surely has the shape of the whole nest."""
        return any(isinstance(inner, ast.Name) and inner.id in self.full_shape for inner in ast.walk(node)) or any(
            isinstance(inner, ast.Attribute) and inner.attr == "asarray" for inner in ast.walk(node)
        )

    def _is_awaited(self, name: str | None) -> bool:
        """Whether a return statement that was met refers to this array: then its name must not be given away."""
        return name is not None and any(
            isinstance(inner, ast.Name) and inner.id == name
            for mask, value in self.returns
            for part in (mask, value)
            if part is not None
            for inner in ast.walk(part)
        )

    def name(self, wanted: str, *, fresh: bool) -> str:
        """A name of the array form; a fresh one inside a branch, where the old value is still needed."""
        if not fresh:
            self.taken.add(wanted)
            return wanted
        name = fresh_name(wanted, self.taken)
        self.taken.add(name)
        return name

    def _if(self, statement: ast.If, mask: ast.expr | None) -> None:
        condition = self.expressions.condition(statement.test)
        simple = isinstance(condition, ast.Compare) and all(
            isinstance(inner, (ast.Name, ast.Constant)) for inner in (condition.left, *condition.comparators)
        )
        if not simple:
            mask_name = self.name("mask", fresh=True)
            self.lines.append(f"{mask_name} = {source(condition)}")
            condition = ast.Name(mask_name, ast.Load())
        numpy = self.expressions.numpy
        before = dict(self.expressions.names)
        self.run(statement.body, _both(numpy, mask, condition))
        yes = dict(self.expressions.names)
        self.expressions.names.clear()
        self.expressions.names.update(before)
        if statement.orelse:
            opposite = ast.parse(f"{numpy}.logical_not({source(condition)})", mode="eval").body
            self.run(statement.orelse, _both(numpy, mask, opposite))
        self._merge(condition, yes, dict(self.expressions.names), branch=mask is not None)

    def _merge(self, condition: ast.expr, yes: dict[str, str], no: dict[str, str], *, branch: bool) -> None:
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


def chosen(numpy: str, returns: list[tuple[ast.expr | None, ast.expr]]) -> list[str]:
    """The lines by which a function of several returns returns what its conditions choose."""
    widths = {len(value.elts) if isinstance(value, ast.Tuple) else 0 for _, value in returns}
    if len(widths) != 1 or not returns:
        raise AnalysisRefused("it returns different numbers of values")
    width = widths.pop()
    *earlier, (_, last) = [
        (mask, list(value.elts) if isinstance(value, ast.Tuple) else [value]) for mask, value in returns
    ]
    if not earlier:
        return [f"return {', '.join(map(source, last))}"]
    masks = ", ".join(source(mask) for mask, _ in earlier if mask is not None)
    selections = []
    for index in range(max(1, width)):
        values = ", ".join(source(parts[index]) for _, parts in earlier)
        selections.append(f"{numpy}.select(cases, [{values}], {source(last[index])})")
    if len(selections) == 1:
        return [f"cases = [{masks}]", f"return {selections[0]}"]
    return [f"cases = [{masks}]", "return (", *(f"    {selection}," for selection in selections), ")"]


def source(node: ast.expr) -> str:
    """An expression as text."""
    return ast.unparse(ast.fix_missing_locations(node))


def names_of(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> list[str]:
    """Names that are loaded or stored in these nodes, in the order in which they appear."""
    names = (node for top in nodes for node in ast.walk(top) if isinstance(node, ast.Name))
    return list(dict.fromkeys(node.id for node in names if isinstance(node.ctx, context)))


def _both(numpy: str, mask: ast.expr | None, condition: ast.expr) -> ast.expr:
    if mask is None:
        return condition
    return ast.parse(f"{numpy}.logical_and({source(mask)}, {source(condition)})", mode="eval").body


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
