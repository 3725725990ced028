"""Where the results of a loop's turns go: a cell of a new tensor, a new list, a sum, a count."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import libcst as cst

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.vectorize.cells import Axis
from unstall.optimize.vectorize.syntax import elements, sign, single_target, source
from unstall.optimize.vectorize.turns import Scope, dimensions, indexed, is_full

_NUMBERS = (cst.Integer, cst.Float)
_SUMS = (cst.Add, cst.Subtract, cst.AddAssign, cst.SubtractAssign)
_NEW = ("zeros", "empty", "ones", "full", "tensor")


@dataclass(frozen=True)
class Sink:
    """Where a turn's result goes: the name, the kind, and the value in the statement."""

    name: str
    kind: str
    """cell, list, sum, count, or chosen: a count of the turns that a decision chose; set: of a name within a turn."""
    value: cst.BaseExpression
    step: Any
    text: str = ""
    """Of a sum: the source before the value, ``total = total + ``."""
    dims: dict[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Tells it from what else a turn does."""
        return f"{self.kind} {self.name} {self.text}"


def sink_of(step: Any) -> Sink | None:
    """``out[i] = x``, ``results.append(x)``, ``total += x``, ``total = total + x``: as the statement shows it."""
    target = single_target(step)
    if isinstance(target, cst.Subscript):
        return Sink(source(target), "cell", step.value, step)
    if isinstance(step, cst.Expr) and isinstance(step.value, cst.Call) and len(step.value.args) == 1:
        to, _, method = source(step.value.func).rpartition(".")
        return Sink(to, "list", step.value.args[0].value, step) if method == "append" else None
    if isinstance(step, cst.AugAssign) and isinstance(step.operator, _SUMS):
        name = source(step.target)
        return Sink(name, "sum", step.value, step, f"{name} {sign(step.operator)} ")
    added = step.value if isinstance(step, cst.Assign) else None
    if target is None or not isinstance(added, cst.BinaryOperation) or not isinstance(added.operator, _SUMS):
        return None
    name, text = source(target), f"{source(target)} = {source(target)} {sign(added.operator)} "
    if source(added.left) == name:
        return Sink(name, "sum", added.right, step, text)
    is_commuted = source(added.right) == name and isinstance(added.operator, cst.Add)
    return Sink(name, "sum", added.left, step, text) if is_commuted else None


class Sinks:
    """Reads the statements by which a result leaves a turn."""

    def __init__(self, scope: Scope, loop: cst.CSTNode, axes: Sequence[Axis], rows: Collection[str]):
        """``axes``: of the nest, as far as it is read. ``rows``: names of theirs that are rows, not numbers."""
        self.scope, self.module, self.loop, self.axes, self.rows = scope, scope.module, loop, axes, rows
        nodes = self.module.inside(scope.function)
        self.before = nodes[: nodes.index(loop)]
        """What comes before the loop in the function."""

    def __call__(self, step: Any) -> Sink | None:
        """What a statement does with a turn's result, if it is one that leaves the turn. Raises AnalysisRefused."""
        sink = sink_of(step)
        if sink is None and isinstance(step, cst.AugAssign) and isinstance(step.target, cst.Name):
            raise self.scope.refused(step, "it may change a tensor in place")
        if sink is not None and sink.kind == "cell":
            return self._cell(sink, single_target(step))
        if sink is None or not sink.name.isidentifier():
            return None
        _, made = self._made(sink.name)
        if sink.kind == "list":
            if made is None or source(made) not in ("[]", "list()"):
                raise AnalysisRefused(f"{sink.name} is not known to be a list")
            return sink
        if isinstance(step, cst.AugAssign) and not isinstance(made, _NUMBERS):
            self._check_new(sink.name)
        if not _is_number(sink.value):
            return sink
        return replace(sink, kind="chosen" if isinstance(sink.value, cst.Call) else "count")

    def _cell(self, sink: Sink, target: Any) -> Sink:
        base, indices = indexed(target)
        dims = dimensions(indices, [axis.variable for axis in self.axes if axis.variable not in self.rows])
        others = [index for index in indices if not (isinstance(index, cst.Name) and index.value in dims)]
        is_own = len(dims) == len(self.axes) and min(dims.values(), default=-1) >= 0 and all(map(is_full, others))
        leading = sorted(dims.values()) == list(range(len(dims)))
        if not isinstance(base, cst.Name) or not is_own or not (leading or len(dims) == 1):
            raise self.scope.refused(target, f"writes {sink.name}, not a cell of its own")
        self._check_new(base.value)
        return replace(sink, name=base.value, dims=dims)

    def _made(self, name: str) -> tuple[cst.Assign | None, cst.BaseExpression | None]:
        """The last assignment to a name before the loop, and its value; no value where others may know it too."""
        for node in reversed(self.before):
            for target in node.targets if isinstance(node, cst.Assign) else ():
                values = _values(target.target, node.value)  # type: ignore[attr-defined]
                if name in values:
                    return node, values[name] if single_target(node) is not None else None  # type: ignore[return-value]
        return None, None

    def _check_new(self, name: str) -> None:
        """Refuse to write into what may be known by another name: a turn might read what another one wrote."""
        made, value = self._made(name)
        if made is None or value is None or not _is_new(value):
            raise AnalysisRefused(f"{name} is not made anew in the function")
        since = self.before[self.before.index(made) + len(self.module.inside(made)) :]
        is_read = any(isinstance(node, cst.Name) and node.value == name and self.module.context(node) for node in since)
        loops = {node for node in self.module.ancestors(self.loop) if isinstance(node, (cst.For, cst.While))}
        if is_read or not loops.issubset(self.module.ancestors(made)):
            raise AnalysisRefused(f"{name} is used before the loop, or filled by several")


def _values(target: cst.BaseExpression, value: cst.BaseExpression) -> dict[str, cst.BaseExpression | None]:
    """Name → what an assignment gives it, if that can be told."""
    if not isinstance(target, cst.Tuple):
        return {source(target): value}
    names, parts = elements(target), elements(value)
    known = isinstance(value, cst.Tuple) and len(parts) == len(names)
    return {source(name): parts[number] if known else None for number, name in enumerate(names)}


def _is_number(value: cst.BaseExpression) -> bool:
    """Whether a term is a number, of turns that a decision may choose."""
    if isinstance(value, cst.Call) and source(value.func).endswith(".where") and len(value.args) == 3:
        return all(_is_number(arg.value) for arg in value.args[1:])
    return isinstance(value, _NUMBERS)


def _is_new(value: cst.BaseExpression) -> bool:
    """Whether an expression makes a tensor of its own."""
    last = source(value.func).rpartition(".")[2] if isinstance(value, cst.Call) else ""
    return last.removeprefix("new_").removesuffix("_like") in _NEW
