"""Loops over torch tensors as ``torch.vmap`` of one turn: pairs, rows, heads, groups, sums over them.

``for i in range(n): for j in range(m): out[i, j] = f(a[i], b[j])`` becomes
``out[:n, :m] = vmap(vmap(f, (None, 0)), (0, None))(a[:n], b[:m])``. What a turn may be is read in
:mod:`unstall.optimize.vectorize.turns`, where its results go in :mod:`unstall.optimize.vectorize.sinks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst
import libcst.matchers as m

from unstall.optimize.source.bindings import only_names
from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.loops import RewrittenLoop
from unstall.optimize.source.module import SourceModule, dotted, number_of
from unstall.optimize.source.names import fresh_name
from unstall.optimize.vectorize.cells import Axis
from unstall.optimize.vectorize.choices import names_set, without_decisions
from unstall.optimize.vectorize.loops import loops_around, range_axis, read_after
from unstall.optimize.vectorize.sinks import Sink, Sinks
from unstall.optimize.vectorize.syntax import (
    call_of,
    elements,
    is_text,
    names_in,
    single_target,
    source,
    steps,
)
from unstall.optimize.vectorize.turns import Argument, Scope, Turn

_MAX_AXES = 2
_LINE = 100
"""Characters of a call with a lambda in it: a longer one gets a function of its own."""
_JOINS = {"torch.stack": "stack", "torch.cat": "cat", "torch.concat": "cat", "builtins.sum": "sum"}
_JOINED = m.Call(args=[m.Arg(m.ListComp() | m.GeneratorExp(), keyword=None, star=""), m.ZeroOrMore()])
_LISTS = (cst.List, cst.ListComp, cst.Tuple, cst.Dict)


def mapped(module: SourceModule, line: int) -> RewrittenLoop:
    """The outermost loop around a line, or around a call of the function it is in, for all turns at once.

    Raises AnalysisRefused with the reason of the outermost one.
    """
    torch = module.alias("torch")
    if torch is None:
        raise AnalysisRefused("the module does not import torch")
    reasons = []
    for function, loop in _candidates(module, line):
        try:
            nest = _Nest(module, Scope(module, function, torch), loop)
            return nest.comprehension(loop) if isinstance(loop, cst.Call) else nest.statements(loop)
        except AnalysisRefused as reason:
            reasons.append(reason)
    raise reasons[0] if reasons else AnalysisRefused(f"line {line} is in no loop of a function")


def _candidates(
    module: SourceModule, line: int, depth: int = 2
) -> Iterator[tuple[cst.FunctionDef, cst.For | cst.Call]]:
    """(function, loop) around a line, outermost first; then those that call the function of the line."""
    function = module.innermost(line, cst.FunctionDef)
    if function is None:
        return
    loops = loops_around(module, function, line)
    for node in module.inside(function):
        if node in loops or (m.matches(node, _JOINED) and module.is_on(node, line)):
            yield function, node  # type: ignore[misc]
    for call in module.all(cst.Call) if depth else ():
        if dotted(call.func).removeprefix("self.") == function.name.value:
            yield from _candidates(module, module.first_line(call), depth - 1)


class _Nest:
    """One nest of loops, or the comprehension that a call joins."""

    def __init__(self, module: SourceModule, scope: Scope, loop: cst.For | cst.Call):
        self.module, self.scope, self.loop, self.torch = module, scope, loop, scope.torch
        self.axes: list[Axis] = []
        self.rows: dict[str, tuple[str, str]] = {}
        self.sinks = Sinks(scope, loop, self.axes, self.rows)
        self.triangle = ""
        """Of a nest over pairs: the call that gives their indices, with a hole for the device."""

    @property
    def variables(self) -> list[str]:
        """The names that are numbers."""
        return [axis.variable for axis in self.axes if axis.variable not in self.rows]

    # ------------------------------------------------------------------ a comprehension

    def comprehension(self, call: cst.Call) -> RewrittenLoop:
        """``torch.stack([f(x[i]) for i in range(n)])``. Raises AnalysisRefused."""
        join, dim = _JOINS.get(self.module.name(call)), _dim(call)
        if join is None or dim is None or (join == "sum" and len(call.args) > 1):
            raise self.scope.refused(call, f"{source(call.func)} does not join tensors along a known dimension")
        made: Any = call.args[0].value
        part = made.for_in
        while part is not None:
            if part.ifs or part.asynchronous:
                raise self.scope.refused(call, "which turns there are depends on data")
            self._add_axis(part)
            part = part.inner_for_in
        if self.triangle or (len(self.axes) > 1 and dim):
            raise self.scope.refused(call, "the comprehension is over pairs")
        turn = Turn(self.scope, self.variables, self.rows)
        value = turn(made.elt)
        out_dim = dim - 1 if join == "cat" and dim < 0 else dim
        text = self._call(turn, f"lambda {', '.join(turn.arguments)}: {source(value)}", out_dim)
        levels = len(self.axes)
        if join == "sum":
            text += f".sum({_sum_dims(levels)})"
        elif join == "cat":
            text += f".flatten({out_dim}, {out_dim + levels})"
        elif levels > 1:
            text += f".flatten(0, {levels - 1})"
        return self._mapped(cst.parse_expression(text))

    # ------------------------------------------------------------------ a loop

    def statements(self, loop: cst.For) -> RewrittenLoop:
        """A loop whose turns write cells, append, or add to a sum. Raises AnalysisRefused."""
        body = without_decisions(self.module, self._body(loop), self.torch)
        turn = Turn(self.scope, self.variables, self.rows)
        assigned = names_set(body)
        written = {sink.name for sink in map(self.sinks, body) if sink is not None}
        lines: list[str] = []
        sinks: list[tuple[Sink, str]] = []
        for step in body:
            sink, target, unreadable = self.sinks(step), single_target(step), written | (assigned - turn.local)
            if sink is not None:
                sinks.append((sink, "" if sink.kind == "count" else source(turn(sink.value, unreadable))))
            elif isinstance(step, cst.Assign) and target is not None and only_names(target):
                value, names = turn(step.value, unreadable), set(names_in(target))
                if not names.isdisjoint(names_in(*(sink.value for sink, _ in sinks))):
                    raise self.scope.refused(step, "a turn goes on with what it has given away")
                turn.local |= names
                turn.masks = (turn.masks - names) | (names if turn.is_mask(step.value) else set())
                lines.append(f"{source(target)} = {source(value)}")
            elif not is_text(step):
                raise self.scope.refused(step, f"{type(step).__name__} is not done for all turns at once")
        if any(name in assigned for axis in self.axes for name in axis.names):
            raise AnalysisRefused("how many turns there are is worked out in the loop")
        later = read_after(self.module, self.scope.function, loop) & {*assigned - written, *turn.variables, *self.rows}
        if later:
            raise AnalysisRefused(f"{', '.join(sorted(later))} is read after the loop")
        if turn.local & (written | set(turn.arguments)):
            raise AnalysisRefused("a turn makes anew what it takes or writes into")
        replacement = [statement(self.module.tree, text) for text in self._replacement(turn, lines, sinks)]
        replacement[0] = replacement[0].with_changes(leading_lines=loop.leading_lines)
        return self._mapped(*replacement)

    def _body(self, loop: cst.For) -> list[Any]:
        """The statements of a turn, of an outer loop's before those of the inner one. Raises AnalysisRefused."""
        if loop.orelse:
            raise self.scope.refused(loop, "the loop has an else")
        self._add_axis(loop)
        *before, last = body = steps(loop.body)
        if isinstance(last, cst.For) and last.asynchronous is None and len(self.axes) < _MAX_AXES:
            if any(self.sinks(step) is not None for step in before):
                raise self.scope.refused(loop, "the outer loop does more than prepare")
            return [*before, *self._body(last)]
        return body

    # ------------------------------------------------------------------ what it runs over

    def _add_axis(self, loop: cst.For | cst.CompFor) -> None:
        axis = range_axis(self.module, loop) or self._rows_axis(loop.target, loop.iter)
        if not {*self.variables, *self.rows}.isdisjoint(axis.names):
            self._set_triangle(axis)
        self.axes.append(axis)

    def _rows_axis(self, target: cst.BaseExpression, looped: cst.BaseExpression) -> Axis:
        """``for row in x``, of zip and of enumerate as well. Raises AnalysisRefused."""
        variable, counted = "", self._arguments(looped, "builtins.enumerate")
        if len(counted) == 1 and len(elements(target)) == 2:
            variable, target, looped = source(elements(target)[0]), elements(target)[1], counted[0]
        zipped = self._arguments(looped, "builtins.zip") if isinstance(target, cst.Tuple) else []
        names, values = (elements(target), zipped) if zipped else ([target], [looped])
        plain = all(isinstance(value, (cst.Name, cst.Attribute)) for value in values)
        if not plain or len(values) != len(names) or not all(isinstance(name, cst.Name) for name in names):
            raise AnalysisRefused(f"{source(looped)} is not known to be a range or a tensor")
        for value in values:
            if any(isinstance(made, _LISTS) for made in self.scope.values_of(value)):
                raise AnalysisRefused(f"{source(value)} is no tensor")
        variable = variable or source(names[0])
        self.rows |= {source(name): (variable, source(value)) for name, value in zip(names, values)}
        return Axis(variable, cst.Integer("0"), call_of("len", values[0]))

    def _arguments(self, node: cst.BaseExpression, name: str) -> list[cst.BaseExpression]:
        """What a function of this name is called with, if it is called here."""
        args = node.args if isinstance(node, cst.Call) and self.module.name(node) == name else ()
        plain = [arg for arg in args if arg.keyword is None or arg.keyword.value != "strict"]
        return [arg.value for arg in plain] if all(arg.keyword is None and not arg.star for arg in plain) else []

    def _set_triangle(self, inner: Axis) -> None:
        """``for i in range(n): for j in range(i + 1, n)``, and its like. Raises AnalysisRefused."""
        (outer,) = self.axes if len(self.axes) == 1 else [None]
        if outer is not None and not self.rows:
            i, size = outer.variable, source(outer.end)
            begin, end, from_zero = source(inner.begin), source(inner.end), source(outer.begin) == "0"
            upper = {f"{i} + 1": 1, i: 0}.get(begin)
            lower = {i: -1, f"{i} + 1": 0}.get(end)
            if upper is not None and from_zero and (size == end or (upper and size == f"{end} - 1")):
                self.triangle = f"{self.torch}.triu_indices({end}, {end}, {upper}, device={{}}.device)"
            elif lower is not None and begin == "0" and (from_zero or (lower and source(outer.begin) == "1")):
                self.triangle = f"{self.torch}.tril_indices({size}, {size}, {lower}, device={{}}.device)"
        if not self.triangle:
            raise AnalysisRefused("the inner loop's range depends on the outer loop")

    # ------------------------------------------------------------------ the replacement

    def _replacement(self, turn: Turn, lines: list[str], sinks: Sequence[tuple[Sink, str]]) -> Iterator[str]:
        """Source of the statements that stand in the loop's place."""
        results = [(sink, value) for sink, value in sinks if sink.kind != "count"]
        if not results:
            raise AnalysisRefused("nothing that a turn computes is kept")
        turn_source = f"lambda {', '.join(turn.arguments)}: {results[0][1]}"
        out_dim = next((dim for sink, _ in results for dim in sink.dims.values() if len(sink.dims) == 1), 0)
        if out_dim and len(results) > 1:
            raise AnalysisRefused("the results are laid out in several ways")
        if lines or len(results) > 1 or len(self._call(turn, turn_source, out_dim)) > _LINE:
            name = fresh_name("each_pair" if len(self.axes) > 1 else "each_row", self.scope.taken)
            values = ", ".join(value for _, value in results)
            body = "\n".join(f"{self.module.tree.default_indent}{text}" for text in [*lines, f"return {values}"])
            yield f"def {name}({', '.join(turn.arguments)}):\n{body}\n"
            turn_source = name
        if self.triangle:
            yield f"{', '.join(axis.variable for axis in self.axes)} = {self.triangle.format(_any_tensor(turn))}"
        call = self._call(turn, turn_source, out_dim)
        names = [call]
        if len(results) > 1:
            names = [fresh_name(f"{sink.name}_{turn_source.split('_')[1]}s", self.scope.taken) for sink, _ in results]
            if len(set(names)) < len(names):
                raise AnalysisRefused("a turn gives several results to one name")
            yield f"{', '.join(names)} = {call}"
        texts = iter(names)
        for sink, _ in sinks:
            yield self._store(sink, "" if sink.kind == "count" else next(texts), turn)

    def _store(self, sink: Sink, values: str, turn: Turn) -> str:
        """The statement that puts the results of all turns where each turn's went."""
        levels = 1 if self.triangle else len(self.axes)
        if sink.kind == "count":
            factor = "" if source(sink.value) == "1" else f"{source(sink.value)} * "
            return f"{sink.text}{factor}{self._turns()}"
        if sink.kind in ("sum", "chosen"):
            total = f"{values}.sum({_sum_dims(levels)})"
            return sink.text + (total if sink.kind == "sum" else f"{total}.item()")
        if sink.kind == "list":
            return f"{sink.name}.extend({values}{f'.flatten(0, {levels - 1})' if levels > 1 else ''})"
        swapped = levels > 1 and list(sink.dims) != [axis.variable for axis in self.axes]
        indices = self._indices(Argument(sink.name, sink.dims))
        return f"{sink.name}[{', '.join(indices)}] = {values}{'.transpose(0, 1)' if swapped else ''}"

    def _turns(self) -> str:
        """How many turns there are, as source."""
        if self.triangle:
            return f"len({self.axes[0].variable})"
        counts = [
            source(axis.end) if source(axis.begin) == "0" else f"({source(axis.end)} - {source(axis.begin)})"
            for axis in self.axes
        ]
        return " * ".join(count if count.isidentifier() or count.endswith(")") else f"({count})" for count in counts)

    def _call(self, turn: Turn, function: str, out_dim: int) -> str:
        """``torch.vmap(torch.vmap(f, (None, 0)), (0, None))(a, b)``. Raises AnalysisRefused."""
        arguments = list(turn.arguments.values())
        values = [self._value(argument, _any_tensor(turn)) for argument in arguments]
        if self.triangle:
            by_pairs = [min(argument.dims.values(), key=abs) for argument in arguments]
            return self._level(function, by_pairs, 0) + _call(values)
        for number in reversed(range(len(self.axes))):
            outer = [axis.variable for axis in self.axes[:number]]
            variable = self.axes[number].variable
            dims = [_remaining(argument.dims, variable, outer) for argument in arguments]
            function = self._level(function, dims, out_dim if number == 0 else 0)
        return function + _call(values)

    def _level(self, function: str, dims: Sequence[int | None], out_dim: int) -> str:
        if all(dim is None for dim in dims):
            raise AnalysisRefused("a turn takes nothing of its own")
        same = len(set(dims)) == 1
        in_dims = str(dims[0]) if same else f"({', '.join(map(str, dims))})"
        options = ([] if in_dims == "0" and not out_dim else [in_dims]) + ([str(out_dim)] if out_dim else [])
        return f"{self.torch}.vmap({', '.join([function, *options])})"

    def _value(self, argument: Argument, tensor: str) -> str:
        """What is given to vmap for an argument, on the device of some tensor where it has none of its own."""
        if not argument.base:
            (variable,) = argument.dims
            axis = next(axis for axis in self.axes if axis.variable == variable)
            device = f", device={argument.device or tensor}.device"
            return variable if self.triangle else axis.values(self.torch)[:-1] + device + ")"
        indices = self._indices(argument)
        return (
            argument.base
            if all(index in (":", "...") for index in indices)
            else f"{argument.base}[{', '.join(indices)}]"
        )

    def _indices(self, argument: Argument) -> list[str]:
        """The indices by which all turns' parts of a tensor are taken."""
        from_end = min(argument.dims.values()) < 0
        if from_end and max(argument.dims.values()) >= 0:
            raise AnalysisRefused(f"which dimensions of {argument.base} are indexed is not certain")
        indices = [":"] * (-min(argument.dims.values()) if from_end else max(argument.dims.values()) + 1)
        for variable, dim in argument.dims.items():
            axis = next(axis for axis in self.axes if axis.variable == variable)
            covers = source(axis.begin) == "0" and source(axis.end) in _sizes(argument.base, dim)
            indices[dim] = variable if self.triangle else ":" if covers else axis.slice(0)
        if self.triangle and len(argument.dims) > 1 and abs(int.__sub__(*argument.dims.values())) != 1:
            raise AnalysisRefused(f"{argument.base} is indexed by pairs in dimensions that are apart")
        return ["...", *indices] if from_end else indices

    def _mapped(self, *replacement: cst.CSTNode) -> RewrittenLoop:
        module, parts = self.module, dict.fromkeys([self.loop, *self.scope.called])
        lines = tuple((module.first_line(part), module.last_line(part)) for part in parts)
        tree = replaced(module.tree, self.loop, *replacement)
        name = self.scope.function.name.value
        return RewrittenLoop(name, self.loop, tree, lines, key=str(module.first_line(self.loop)))


def _any_tensor(turn: Turn) -> str:
    """A tensor that a turn takes. Raises AnalysisRefused."""
    for argument in turn.arguments.values():
        if argument.base or argument.device:
            return argument.base or argument.device
    raise AnalysisRefused("a turn takes no tensor")


def _sizes(base: str, dim: int) -> list[str]:
    """How a dimension's size is written."""
    return [f"{base}.shape[{dim}]", f"{base}.size({dim})", *([f"len({base})"] if dim == 0 else [])]


def _remaining(dims: dict[str, int], variable: str, outer: Sequence[str]) -> int | None:
    """The dimension of an argument that a variable runs over, after the outer levels took theirs."""
    if variable not in dims:
        return None
    dim = dims[variable]
    taken = [dims[name] for name in outer if name in dims and (dims[name] < 0) == (dim < 0)]
    return dim - sum(other < dim for other in taken) if dim >= 0 else dim + sum(other > dim for other in taken)


def _dim(call: cst.Call) -> int | None:
    """The dimension that ``torch.stack`` or ``torch.cat`` joins along; None where it is not written as a number."""
    given = call.args[1:]
    if len(given) > 1 or any(arg.keyword is not None and arg.keyword.value not in ("dim", "axis") for arg in given):
        return None
    dim = number_of(given[0].value) if given else 0
    return dim if isinstance(dim, int) else None


def _sum_dims(levels: int) -> str:
    return "0" if levels == 1 else f"({', '.join(map(str, range(levels)))})"


def _call(values: Sequence[str]) -> str:
    return f"({', '.join(values)})"
