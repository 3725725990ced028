"""A loop that calls a model for one item at a time, written so that it calls it for many at once."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unstall.optimize.batching.loops import BatchableLoop
from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.toplevel import with_import, with_runtime


def with_batches(loop: BatchableLoop, size: int, *, stacked: bool) -> cst.Module:
    """The tree with the loop running ahead. ``stacked``: an input is one item, without a dimension of items.

    Raises NameTaken where the file uses a name that this needs for something else.
    """
    statements = _LoopWriter(loop, stacked=stacked).statements(size)
    return with_import(with_runtime(replaced(loop.module.tree, loop.loop, *statements), "batches"), "torch")


class _LoopWriter:
    """Writes one loop anew."""

    def __init__(self, loop: BatchableLoop, *, stacked: bool):
        self.module, self.loop, self.stacked = loop.module, loop, stacked
        self.used = {name.value for name in loop.module.all(cst.Name)}
        self.block: list[Any] = list(loop.loop.body.body)
        self.inner: list[Any] = list(loop.within.body.body) if loop.within is not None else self.block
        self.varying = {arg: self._fresh("rows") for arg in loop.inputs}

    def _fresh(self, wanted: str) -> str:
        """The name, with a number where the file uses it."""
        name = fresh_name(wanted, self.used)
        self.used.add(name)
        return name

    def statements(self, size: int) -> list[cst.BaseStatement]:
        """The function that makes the inputs, the call if it needs more than its name, and the loop."""
        inputs_of, (call, defined) = self._fresh("inputs_of"), self._call()
        output, following = self._following()
        looped = self.module.code(self.loop.loop.iter)
        sized = " and ".join(f'hasattr({iterable}, "__len__")' for iterable in self.loop.sized)
        batches = f"_Batches({call}, {f'{size} if {sized} else 1' if sized else size}{', stacked=True' * self.stacked})"
        underscore = any(
            isinstance(call.func, cst.Name) and call.func.value == "_" for call in self.module.all(cst.Call)
        )
        target = self._needed_names(self._fresh("unused") if underscore else "_")
        head = statement(
            self.module.tree, f"for {target}, {output} in {batches}.each({looped}, {inputs_of}):\n    pass\n"
        )
        empty = cst.EmptyLine(indent=False)
        body = self.loop.loop.body.with_changes(body=following)
        loop = head.with_changes(body=body, leading_lines=[empty])
        around: Any = self.module.parent(self.loop.loop)
        above = [] if around.body[0] is self.loop.loop else [empty]
        first = self._inputs(inputs_of).with_changes(leading_lines=self.loop.loop.leading_lines or above)
        return [first, *[function.with_changes(leading_lines=[empty]) for function in defined], loop]

    def _needed_names(self, none: str) -> str:
        names = ", ".join(self.loop.needed)
        return names if len(self.loop.needed) == 1 else f"({names})" if names else none

    def _inputs(self, name: str) -> Any:
        """``def inputs_of(items)``: the loop's beginning, as a generator."""
        items = self._fresh("items")
        values = ", ".join(self.module.code(arg.value) for arg in self.loop.inputs)
        values += "," * (len(self.loop.inputs) == 1)
        text = f"def {name}({items}):\n    for _ in {items}:\n        yield {self._needed_names('None')}, ({values})\n"
        function = statement(self.module.tree, text)
        loop: Any = function.body.body[0]
        body = loop.body.with_changes(body=[*self._before(), *loop.body.body])
        return function.with_deep_changes(loop, target=self.loop.loop.target, body=body)

    def _before(self) -> list[Any]:
        """The statements before the call's."""
        inner = self.inner[: self.inner.index(self.loop.statement)]
        return inner if self.loop.within is None else self.block[: self.block.index(self.loop.within)] + inner

    def _call(self) -> tuple[str, list[Any]]:
        """(what is called with the inputs, the function to define for it if any)."""
        call, within = self.loop.call, self.loop.within
        args = [
            arg.with_changes(value=cst.Name(self.varying[arg])) if arg in self.varying else arg for arg in call.args
        ]
        text = self.module.code(call.with_changes(args=args))
        parameters = ", ".join(self.varying.values())
        if within is not None:
            name = self._fresh("outputs_of")
            function = statement(self.module.tree, f"def {name}({parameters}):\n    with x:\n        return {text}\n")
            return name, [function.with_deep_changes(function.body.body[0], items=within.items)]
        if len(self.varying) == len(call.args) and all(arg.keyword is None for arg in call.args):
            return self.module.code(call.func), []
        return f"lambda {parameters}: {text}", []

    def _following(self) -> tuple[str, list[Any]]:
        """(the name of an item's output, the loop's statements from that of the call on)."""
        line, within = self.loop.statement, self.loop.within
        small = line.body[0]
        target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
        alone = isinstance(small, cst.Assign) and small.value is self.loop.call
        commented = any(above.comment for above in line.leading_lines) or line.trailing_whitespace.comment is not None
        if alone and isinstance(target, cst.Name) and not commented:
            output, own = target.value, []
        else:
            output = self._fresh("output")
            own = [line.deep_replace(self.loop.call, cst.Name(output))]
        inner = [*own, *self.inner[self.inner.index(line) + 1 :]]
        if within is not None:
            after = self.block[self.block.index(within) + 1 :]
            inside = [within.with_changes(body=within.body.with_changes(body=inner))] if inner else []
            inner = [*inside, *after]
        return output, inner or [statement(self.module.tree, "pass")]
