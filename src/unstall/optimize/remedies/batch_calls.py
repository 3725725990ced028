"""A loop that calls the model for one item at a time calls it for many at once, and goes on with each in its turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.ahead import Ahead, NotInLoop, NotSafe, take_apart
from unstall.optimize.case import Area, Call, Case, Exactness, Made, Proposal, Unfit, predicted_without
from unstall.optimize.inline import inlined
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "batch-calls"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""Matrix products of another size add in another order."""

_MIN_SHARE = 0.1
_SIZE = 256
_INPUT_BYTES = 16 << 20  # in one call: activations are many times that
_REMOVED, _REMOVED_ELSE = 0.9, 0.6  # of the model's time, at most; and where neither its arithmetic nor more is known
_EFFICIENCY = 0.3  # of the machine's peak, in a call with many items

DEFINITION = '''class _Batches:
    """A model that is called for many items at once, and its outputs one by one."""

    @staticmethod
    def each(items, inputs_of, call, size):
        """What ``inputs_of`` keeps of each item, and the model's output for it."""
        items = iter(items)
        while chunk := list(itertools.islice(items, size)):
            kept, inputs = [], []
            for one, values in inputs_of(chunk):
                kept.append(one)
                inputs.append(values)
            yield from zip(kept, _Batches.outputs(call, inputs))

    @staticmethod
    def outputs(call, inputs):
        """The model's outputs: one call for all inputs of the same type and shape."""
        alike, outputs = {}, [None] * len(inputs)
        for number, values in enumerate(inputs):
            kind = tuple([(value.dtype, value.{SHAPE}) for value in values])
            alike.setdefault(kind, []).append(number)
        for numbers in alike.values():
            together = call(*[_Batches.join(column) for column in zip(*[inputs[number] for number in numbers])])
            {COUNTED}
            for number, output in zip(numbers, _Batches.parts(together{COUNTS})):
                outputs[number] = output
        return outputs

    @staticmethod
    def join(values):
        return {JOIN}

    @staticmethod
    def parts(output{COUNTS}):
        """What is for each item in an output for many."""
        if isinstance(output, dict):
            columns = [_Batches.parts(value{COUNTS}) for value in output.values()]
            return [type(output)(zip(output, row)) for row in zip(*columns)]
        if isinstance(output, (tuple, list)):
            return [type(output)(row) for row in zip(*[_Batches.parts(value{COUNTS}) for value in output])]
        {PARTS}
'''

_COUNTED = "            counts = [len(inputs[number][0]) for number in numbers]\n"
_ITEMS = """        if isinstance(output, torch.Tensor) and not output.requires_grad:
            return output.unbind()
        return [output[at] for at in range(len(output))]
"""
_SLICES = """        if isinstance(output, torch.Tensor) and not output.requires_grad:
            return output.split(counts)
        return [output[end - count : end] for count, end in zip(counts, itertools.accumulate(counts))]
"""


def propose(case: Case) -> list[Proposal] | Unfit:
    """Loops of a program that trains nothing, in which the model is called for one item."""
    if any(site.seam == "~backward" for site in case.measurement.sites) or case.probe.optimizers:
        return Unfit("the program trains")
    if any(not loader["map_style"] for loader in case.probe.loaders):
        return Unfit("its dataset is iterable: it may be a stream, which is not known ahead")
    share = case.share("forward")
    if share < _MIN_SHARE:
        return Unfit(f"the model takes {percent(share)} of the step")
    found: dict[tuple[str, str], Proposal] = {}
    reason = "no call of the model with one item, of a size to have several at once, was seen in the program's own code"
    for made in case.probe.models:
        size = size_of(made)
        if size < 2:
            continue
        for way in (in_batches, inlined_in_batches):
            try:
                sources, call, what = way(case, made, size)
            except (NotSafe, SourceError) as error:
                reason = str(error) if way is in_batches else reason
                continue
            proposal = Proposal(
                NAME, f"{what} called for {size} items at once in {call.function} ({call.file.name}:{call.line})",
                EXACTNESS, predicted_without(share, removed(case)),
                f"its calls for one item take {percent(share)} of the step", sources=sources, in_batches=True,
                key=f"{call.file.name}:{call.line}:{what}",
            )  # fmt: skip
            found.setdefault(proposal.id, proposal)
    return list(found.values()) or Unfit(reason)


def size_of(made: Made) -> int:
    """Items in a call, as far as memory allows; 1 where the model is given many already."""
    shapes = made["shapes"]
    if not shapes or not shapes[0] or (len(shapes[0]) > 1 and shapes[0][0] != 1):
        return 1
    return min(_SIZE, _INPUT_BYTES // max(1, int(made["bytes"] or 0)))


def removed(case: Case) -> float:
    """The part of the model's time that is not its arithmetic: it is paid once for many items."""
    model, forward = case.measurement.model, case.measurement.phase_s("forward")
    if not model.flops or not model.peak_flops or not forward:
        return _REMOVED if case.report.verdict.pattern == "overhead-bound" else _REMOVED_ELSE
    return max(0.0, min(_REMOVED, 1 - model.flops / (_EFFICIENCY * model.peak_flops) / forward))


def in_batches(case: Case, made: Made, size: int) -> tuple[Sources, Call, str]:
    """(the sources with the loop changed, the call that it makes, what that calls). Raises NotSafe or SourceError.

    The loop is that around the model's call, or, where its function has none, around the call of that function.
    """
    calls = [call for call in (made.call, *(made["callers"] or ())) if call is not None]
    for number, call in enumerate(calls):
        path = case.user_file(call.file)
        if path is None:
            raise NotSafe("the model is called in a library")
        try:
            loop = take_apart(case.sources.text(path), call)
        except NotInLoop:
            continue
        whole = number == 0 and len(made["shapes"][0]) == 1
        what = "the model" if number == 0 else calls[number - 1].function
        return with_batches(case.sources, path, call, loop, size, whole=whole), call, what
    raise NotSafe("the call is in no loop of the program's own")


def inlined_in_batches(case: Case, made: Made, size: int) -> tuple[Sources, Call, str]:
    """The same, with the function that calls the model put into its caller's loop first."""
    callers = made["callers"] or ()
    path = case.user_file(made.call.file) if made.call is not None else None
    if made.call is None or not callers or path is None or case.user_file(callers[0].file) != path:
        raise NotSafe("the function around the model's call is in another file than its caller")
    module, call = inlined(case.sources.parse(path), callers[0], made.call)
    sources = case.sources.with_module(path, module)
    loop = take_apart(sources.text(path), call)
    whole = len(made["shapes"][0]) == 1
    return with_batches(sources, path, call, loop, size, whole=whole), callers[0], f"the model of {made.call.function}"


# ------------------------------------------------------------------ writing it


def with_batches(sources: Sources, path: Path, call: Call, ahead: Ahead, size: int, *, whole: bool) -> Sources:
    """The sources with the loop running ahead. ``whole``: an input is one item, without a dimension of items."""
    found = rewrite.Found(sources.parse(path))
    node = found.call(call)
    loop: Any = next((one for one in found.nodes(cst.For) if found.place(one).start.line == ahead.loop.lineno), None)
    if node is None or loop is None or not isinstance(loop.body, cst.IndentedBlock):
        raise SourceError("the loop was not found again")
    module = found.module
    fresh = _Fresh(module)
    writer = _Writer(found, loop, node, ahead, fresh)
    statements = writer.statements(size)
    module = rewrite.replaced(module, loop, cst.FlattenSentinel(statements))
    module = with_class(module, definition(ahead.numpy, whole=whole))
    for name in ("itertools", "torch"):
        module = rewrite.with_import(module, name)
    return sources.with_module(path, module)


def with_class(module: cst.Module, text: str) -> cst.Module:
    """The module with the class in it. Raises SourceError where another of that name is there."""
    if text in module.code.replace("\r\n", "\n"):
        return module
    if any(isinstance(node, cst.ClassDef) and node.name.value == "_Batches" for node in module.body):
        raise SourceError("there is a class _Batches already")
    return rewrite.with_definition(module, text)


def definition(numpy: str | None, *, whole: bool) -> str:
    """The class that the loop uses."""
    join = "stack" if whole else "cat"
    parts = {
        "            {COUNTED}\n": "" if whole else _COUNTED,
        "        {PARTS}\n": _ITEMS if whole else _SLICES,
        "{SHAPE}": "shape" if whole else "shape[1:]",
        "{COUNTS}": "" if whole else ", counts",
        "{JOIN}": f"torch.{join}(values)",
    }
    if numpy:
        of_arrays = f"{numpy}.{'stack' if whole else 'concatenate'}(values)"
        parts["{JOIN}"] += f" if isinstance(values[0], torch.Tensor) else {of_arrays}"
    text = DEFINITION
    for place, code in parts.items():
        text = text.replace(place, code)
    return text


class _Fresh:
    """Names that a module does not use yet."""

    def __init__(self, module: cst.Module):
        self.used = {name.value for name in rewrite.walk(module) if isinstance(name, cst.Name)}

    def __call__(self, wanted: str) -> str:
        name = wanted
        number = 2
        while name in self.used:
            name, number = f"{wanted}{number}", number + 1
        self.used.add(name)
        return name


class _Writer:
    """Writes one loop anew."""

    def __init__(self, found: rewrite.Found, loop: cst.For, call: cst.Call, ahead: Ahead, fresh: _Fresh):
        self.found, self.loop, self.call, self.ahead, self.fresh = found, loop, call, ahead, fresh
        self.module = found.module
        self.config = self.module.config_for_parsing
        self.statement: Any = found.statement(call)
        self.block = self._block(loop)
        self.within: Any = found.around(call, cst.With) if ahead.within is not None else None
        self.inner = self._block(self.within) if self.within is not None else self.block
        if self.statement not in self.inner:
            raise SourceError("the loop's statements were not found again")

    @staticmethod
    def _block(node: Any) -> list[Any]:
        if not isinstance(node.body, cst.IndentedBlock):
            raise SourceError("the loop is written on one line")
        lines = list(node.body.body)
        if any(isinstance(one, cst.SimpleStatementLine) and len(one.body) > 1 for one in lines):
            raise SourceError("the loop has several statements on a line")
        return lines

    def statements(self, size: int) -> list[cst.BaseStatement]:
        """The function that makes the inputs, the call if it needs more than its name, and the loop."""
        inputs_of, parameters = self.fresh("inputs_of"), [self.fresh("rows") for _ in self.ahead.inputs]
        call, defined = self._call(parameters)
        output, following = self._following()
        if self.ahead.sized:
            sized = " and ".join(f'hasattr({one}, "__len__")' for one in self.ahead.sized)
            each = f"{size} if {sized} else 1"
        else:
            each = str(size)
        called = any(isinstance(one, cst.Call) and rewrite.name_of(one) == "_" for one in rewrite.walk(self.module))
        target = self._kept(self.fresh("unused") if called else "_")
        looped = rewrite.code(self.module, self.loop.iter)
        head = f"for {target}, {output} in _Batches.each({looped}, {inputs_of}, {call}, {each}):\n    pass\n"
        loop: Any = cst.parse_statement(head, config=self.config)
        empty = cst.EmptyLine(indent=False)
        loop = loop.with_changes(body=self.loop.body.with_changes(body=following), leading_lines=[empty])
        around: Any = self.found.parents.get(self.loop)
        above = [] if around is not None and around.body[0] is self.loop else [empty]
        first = self._inputs(inputs_of).with_changes(leading_lines=self.loop.leading_lines or above)
        return [first, *[one.with_changes(leading_lines=[empty]) for one in defined], loop]

    def _kept(self, none: str) -> str:
        kept = ", ".join(self.ahead.kept)
        return kept if len(self.ahead.kept) == 1 else f"({kept})" if kept else none

    def _inputs(self, name: str) -> Any:
        """``def inputs_of(items)``: the loop's beginning, as a generator."""
        items = self.fresh("items")
        values = "".join(f"{rewrite.code(self.module, self._node(value))}, " for value in self.ahead.inputs)
        values = values.rstrip() if len(self.ahead.inputs) == 1 else values.rstrip(", ")
        text = f"def {name}({items}):\n    for _ in {items}:\n        yield {self._kept('None')}, ({values})\n"
        function: Any = cst.parse_statement(text, config=self.config)
        loop: Any = function.body.body[0]
        before = self._before()
        body = loop.body.with_changes(body=[*before, *loop.body.body])
        return function.with_deep_changes(loop, target=self.loop.target, body=body)

    def _before(self) -> list[Any]:
        if self.within is None:
            return self.block[: self.block.index(self.statement)]
        outer = self.block[: self.block.index(self.within)]
        return outer + self.inner[: self.inner.index(self.statement)]

    def _node(self, value: Any) -> cst.BaseExpression:
        """The argument of the call that an expression of the reading is."""
        read = [*self.ahead.call.args, *(one.value for one in self.ahead.call.keywords)]
        read.sort(key=lambda one: (one.lineno, one.col_offset))
        for arg, one in zip(self.call.args, read):
            if one is value:
                return arg.value
        raise SourceError("the arguments were not found again")

    def _call(self, parameters: list[str]) -> tuple[str, list[Any]]:
        """(what is called with the inputs, the function to define for it if any)."""
        nodes = {self._node(value): name for value, name in zip(self.ahead.inputs, parameters)}
        args = [arg.with_changes(value=cst.Name(nodes[arg.value])) if arg.value in nodes else arg
                for arg in self.call.args]  # fmt: skip
        text = rewrite.code(self.module, self.call.with_changes(args=args))
        if self.within is not None:
            name = self.fresh("outputs_of")
            head = f"def {name}({', '.join(parameters)}):\n    with x:\n        return {text}\n"
            function: Any = cst.parse_statement(head, config=self.config)
            inner: Any = function.body.body[0]
            return name, [function.with_deep_changes(inner, items=self.within.items)]
        plain = len(nodes) == len(self.call.args) and all(arg.keyword is None for arg in self.call.args)
        if plain:
            return rewrite.code(self.module, self.call.func), []
        return f"lambda {', '.join(parameters)}: {text}", []

    def _following(self) -> tuple[str, list[Any]]:
        """(the name of an item's output, the loop's statements from that of the call on)."""
        small = self.statement.body[0]
        alone = isinstance(small, cst.Assign) and small.value is self.call and len(small.targets) == 1
        target = small.targets[0].target if isinstance(small, cst.Assign) else None
        commented = any(line.comment for line in self.statement.leading_lines)
        commented = commented or self.statement.trailing_whitespace.comment is not None
        if alone and isinstance(target, cst.Name) and not commented:
            output, replaced = target.value, []
        else:
            output = self.fresh("output")
            replaced = [self.statement.deep_replace(self.call, cst.Name(output))]
        inner = [*replaced, *self.inner[self.inner.index(self.statement) + 1 :]]
        if self.within is not None:
            after = self.block[self.block.index(self.within) + 1 :]
            inside = [self.within.with_changes(body=self.within.body.with_changes(body=inner))] if inner else []
            inner = [*inside, *after]
        return output, inner or [cst.parse_statement("pass\n")]
