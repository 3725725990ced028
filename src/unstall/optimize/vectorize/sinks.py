"""Where the results of a loop's turns go: a cell of a new tensor, a new list, a sum, a count."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.vectorize.blocks import source
from unstall.optimize.vectorize.cells import Axis
from unstall.optimize.vectorize.loops import holds
from unstall.optimize.vectorize.turns import Function, dimensions, indexed, is_full

_NEW = ("zeros", "empty", "ones", "full", "tensor")


@dataclass(frozen=True)
class Sink:
    """Where a turn's result goes: the name, the kind, and the value."""

    name: str
    kind: str
    """cell, list, sum, count, or chosen: a count of the turns that a decision chose."""
    value: ast.expr
    dims: dict[str, int]
    text: str = ""
    """Of a sum: the source before the value, ``total = total + ``. Of a cell: of its indices."""


class Sinks:
    """Reads the statements by which a result leaves a turn."""

    def __init__(self, function: Function, loop: ast.For | ast.Call, axes: Sequence[Axis], rows: Collection[str]):
        """``axes``: of the nest, as far as it is read. ``rows``: names of theirs that are rows, not numbers."""
        self.function, self.loop, self.axes, self.rows = function, loop, axes, rows

    def __call__(self, part: ast.stmt) -> Sink | None:
        """What a statement does with a turn's result, if it is one that leaves the turn. Raises AnalysisRefused."""
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and len(part.value.args) == 1:
            method = part.value.func
            if isinstance(method, ast.Attribute) and method.attr == "append" and isinstance(method.value, ast.Name):
                _, made = self._made(method.value.id)
                if made is None or source(made) not in ("[]", "list()"):
                    raise AnalysisRefused(f"{method.value.id} is not known to be a list")
                return Sink(method.value.id, "list", part.value.args[0], {})
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            name, operator = part.target.id, {ast.Add: "+=", ast.Sub: "-="}.get(type(part.op))
            _, made = self._made(name)
            if operator is None:
                raise AnalysisRefused(f"line {part.lineno}: it may change a tensor in place")
            if not isinstance(made, ast.Constant):
                self._check_new(name)
            return self._sum(name, f"{name} {operator} ", part.value)
        if not (isinstance(part, ast.Assign) and len(part.targets) == 1):
            return None
        target, value = part.targets[0], part.value
        if isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            sign = "+" if isinstance(value.op, ast.Add) else "-"
            sides = [(value.left, value.right), *([(value.right, value.left)] if sign == "+" else [])]
            for carried, term in sides:
                if source(carried) == target.id:
                    return self._sum(target.id, f"{target.id} = {target.id} {sign} ", term)
        if isinstance(target, ast.Subscript):
            return self._cell(target, value)
        return None

    def _sum(self, name: str, text: str, value: ast.expr) -> Sink:
        kind = "sum" if not _is_number(value) else "count" if isinstance(value, ast.Constant) else "chosen"
        return Sink(name, kind, value, {}, text)

    def _cell(self, target: ast.Subscript, value: ast.expr) -> Sink:
        base, indices = indexed(target)
        dims = dimensions(indices, [axis.variable for axis in self.axes if axis.variable not in self.rows])
        others = [index for index in indices if not (isinstance(index, ast.Name) and index.id in dims)]
        is_own = len(dims) == len(self.axes) and min(dims.values(), default=-1) >= 0 and all(map(is_full, others))
        leading = sorted(dims.values()) == list(range(len(dims)))
        if not isinstance(base, ast.Name) or not is_own or not (leading or len(dims) == 1):
            raise AnalysisRefused(f"line {target.lineno}: writes {source(target)}, not a cell of its own")
        self._check_new(base.id)
        return Sink(base.id, "cell", value, dims)

    def _made(self, name: str) -> tuple[int, ast.expr | None]:
        """Line and value of the last assignment to a name before the loop; no value where others may know it too."""
        line, value = 0, None
        for node in ast.walk(self.function):
            if isinstance(node, ast.Assign) and line < node.lineno < self.loop.lineno:
                for target in node.targets:
                    values = _values(target, node.value)
                    if name in values:
                        line, value = node.lineno, values[name] if len(node.targets) == 1 else None
        return line, value

    def _check_new(self, name: str) -> None:
        """Refuse to write into what may be known by another name: a turn might read what another one wrote."""
        line, (made_at, made) = self.loop.lineno, self._made(name)
        if made is None or not _is_new(made):
            raise AnalysisRefused(f"{name} is not made anew in the function")
        for node in ast.walk(self.function):
            is_loop = isinstance(node, (ast.For, ast.While)) and node.lineno < line and holds(node, line)
            is_read = isinstance(node, ast.Name) and node.id == name and made_at < node.lineno < line
            if is_read or (is_loop and not holds(node, made_at)):
                raise AnalysisRefused(f"{name} is used before the loop, or filled by several")


def _values(target: ast.expr, value: ast.expr) -> dict[str, ast.expr | None]:
    """Name → what an assignment gives it, if that can be told."""
    if isinstance(target, ast.Tuple):
        known = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        parts = value.elts if known else [None] * len(target.elts)  # type: ignore[attr-defined]
        return {source(name): part for name, part in zip(target.elts, parts)}
    return {source(target): value}


def _is_number(value: ast.expr) -> bool:
    """Whether a term is a number, of turns that a decision may choose."""
    if isinstance(value, ast.Call) and source(value.func).endswith(".where") and len(value.args) == 3:
        return all(map(_is_number, value.args[1:]))
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float))


def _is_new(value: ast.expr) -> bool:
    """Whether an expression makes a tensor of its own."""
    last = source(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return last.removeprefix("new_").removesuffix("_like") in _NEW
