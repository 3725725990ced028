"""A region of a function as a function of its own, which is compiled, and the call that takes its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import libcst as cst

from unstall.optimize.compiling.fresh import refuse_aliases
from unstall.optimize.compiling.helpers import is_bound, is_method
from unstall.optimize.compiling.language import TO_LIST, TO_NUMBER, helper, is_append
from unstall.optimize.compiling.region import Region, regions
from unstall.optimize.compiling.strict_zips import comparing, strict_argument, without_strict, zipped_strictly
from unstall.optimize.source.bindings import names_of
from unstall.optimize.source.edit import Edit, apply_edits, both, edited, followed_by, put, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.loops import RewrittenLoop
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.purity import is_stored
from unstall.optimize.source.toplevel import with_definition, with_runtime

_NUMBERS = ("builtins.int", "builtins.float")
_OF_ITEMS = ("builtins.len", "builtins.enumerate", "builtins.zip", "builtins.sum", "builtins.list", "builtins.sorted")


def compiled(module: SourceModule, line: int) -> RewrittenLoop:
    """The module with the loop around a line compiled. Raises AnalysisRefused or NameTaken."""
    reason = AnalysisRefused(f"line {line} is in no loop")
    for find_region in regions(module, line):
        try:
            kernel = _Kernel(module, find_region())
            definitions = (kernel.definition(), *kernel.functions())
        except AnalysisRefused as error:
            reason = error
            continue
        tree = with_definition(edited(module.tree, kernel.call_in_place()), *definitions)
        nodes = (*kernel.region.statements, *kernel.region.helpers)
        return RewrittenLoop(
            function=kernel.region.function.name.value,
            node=kernel.region.loop,
            tree=with_runtime(tree, "compiled"),
            lines=tuple((module.first_line(node), module.last_line(node)) for node in nodes),
            key=str(module.first_line(kernel.region.statements[0])),
        )
    raise reason


class _Kernel:
    """What becomes of a region."""

    def __init__(self, module: SourceModule, region: Region):
        self.module = module
        self.region = region
        self.name = fresh_name(
            f"_{region.function.name.value.strip('_')}_loop", {node.value for node in module.all(cst.Name)}
        )
        replaced = {part for node in region.references() for part in module.inside(node)}
        self.used = {node.value for node in region.nodes if isinstance(node, cst.Name) and node not in replaced}
        self.arguments: dict[str, str] = {name: name for name in region.live_in}
        """The source of what is passed, by parameter."""
        self.edits: dict[cst.CSTNode, Edit] = {}
        self.lifted: dict[cst.FunctionDef, str] = {}
        """The methods that it calls, and their names as functions."""
        self.listed: list[str] = []
        """What is passed as a list, made once and before the loop."""
        self.changed: set[str] = set()
        self.written: set[str] = set()
        self._lift_methods()
        self._take_references()
        refuse_aliases(region)
        self._copy_slices()
        self._unpack_rows()
        self._append_items()
        self._compare_lengths()

    # ------------------------------------------------------------------ what it calls

    def _lift_methods(self) -> None:
        """Give the methods that are called, which become functions of their own, a name each."""
        taken = {self.name, *(node.value for node in self.module.all(cst.Name))}
        for function in self.region.helpers:
            if is_method(self.module, function):
                name = fresh_name(f"_{function.name.value.strip('_')}", taken)
                taken.add(name)
                self.lifted[function] = name
        for node in (*self.region.nodes, *(inner for lifted in self.lifted for inner in self.module.inside(lifted))):
            called = helper(self.module, node) if isinstance(node, cst.Call) else None
            if isinstance(node, cst.Call) and called in self.lifted:
                self.edits[node.func] = put(cst.Name(self.lifted[called]))

    def functions(self) -> list[cst.FunctionDef]:
        """The methods as functions."""
        functions = []
        for function, name in self.lifted.items():
            params = [
                param.with_changes(annotation=None)  # the classes that they name may come later in the file
                for param in function.params.params
                if not is_bound(function, param)
            ]
            changed = apply_edits(function, self.edits).with_changes(name=cst.Name(name), decorators=[], returns=None)
            functions.append(changed.with_changes(params=changed.params.with_changes(params=params)))
        return functions

    # ------------------------------------------------------------------ what it takes

    def _take_references(self) -> None:
        """Make a parameter of each thing that is read of outside."""
        uses: dict[str, list[cst.BaseExpression]] = defaultdict(list)
        for node in self.region.references():
            call = self._called(node, TO_LIST)
            uses[self.module.code(call or node)].append(call or node)
        for code, nodes in uses.items():
            listed = nodes[0] if isinstance(nodes[0], cst.Call) else None
            of = listed.func.value if listed is not None and isinstance(listed.func, cst.Attribute) else nodes[0]
            name = fresh_name(dotted(of).rpartition(".")[2].strip("_") or "values", {*self.arguments, *self.used})
            as_numbers = listed is None and all(self._is_number(node) for node in nodes)
            if listed is not None or as_numbers:
                self.listed.append(dotted(of))
                code = f"_Listed({self.module.code(of)})"
            self.arguments[name] = code
            stored = [node for node in nodes if self._is_store(node)]
            if stored:
                self.changed.add(name)
            if len(stored) == len(nodes):
                self.written.add(name)
            for node in nodes:
                self.edits[node] = put(cst.Name(name))
                if as_numbers:
                    self._index_lists(node)
                if self._called(node, "append") is not None:
                    raise AnalysisRefused(f"line {self.module.first_line(node)} appends to a list made elsewhere")
        self._refuse_changed_lists(node for nodes in uses.values() for node in nodes if self._is_store(node))
        self._refuse_inner_lists()

    def _called(self, node: cst.CSTNode, method: str) -> cst.Call | None:
        """The call of this method of it."""
        attribute = self.module.parent(node)
        call = self.module.parent(attribute) if attribute is not None else None
        if isinstance(attribute, cst.Attribute) and attribute.value is node and attribute.attr.value == method:
            return call if isinstance(call, cst.Call) and call.func is attribute else None
        return None

    def _item(self, node: cst.CSTNode) -> cst.CSTNode:
        """The item of an item of it that is asked for."""
        while isinstance(above := self.module.parent(node), cst.Subscript) and above.value is node:
            node = above
        return node

    def _is_number(self, node: cst.CSTNode) -> bool:
        """Whether an item of it is asked for and made a number of Python, or its length: it might be a list."""
        item = self._item(node)
        above = self.module.parent(item)
        call = self.module.parent(above) if isinstance(above, cst.Arg) else None
        if item is node:
            return isinstance(call, cst.Call) and self.module.name(call) == "builtins.len"
        if self._called(item, TO_NUMBER) is not None:
            return True
        return isinstance(call, cst.Call) and self.module.name(call) in _NUMBERS and len(call.args) == 1

    def _index_lists(self, node: cst.CSTNode) -> None:
        """Of a parameter that is a list: ``x[i, j].item()`` is ``x[i][j]``."""
        item = self._item(node)
        number = self._called(item, TO_NUMBER)
        if number is not None:
            self.edits[number] = lambda call: call.func.value
        while item is not node:
            assert isinstance(item, cst.Subscript)
            self.edits[item] = _chained
            item = item.value

    def _is_store(self, node: cst.CSTNode) -> bool:
        item = self._item(node)
        return item is not node and is_stored(self.module, item)

    def _refuse_changed_lists(self, stored: Iterable[cst.BaseExpression]) -> None:
        """Refuse to change what a list is made of: the compiled code has it as it was at the beginning."""
        for node in stored:
            for of in self.listed:
                ends = sorted((f"{dotted(node)}.", f"{of}."), key=len)
                if ends[1].startswith(ends[0]):  # the same, or a part of it
                    raise AnalysisRefused(f"line {self.module.first_line(node)} changes what lists are made of")

    def _refuse_inner_lists(self) -> None:
        """Refuse lists and numbers that are made of what is no argument."""
        for node in self.region.nodes:
            method = node.func if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else None
            if method is not None and method.attr.value in (TO_LIST, TO_NUMBER) and node not in self.edits:
                raise AnalysisRefused(f"line {self.module.first_line(node)} asks what is no argument for its numbers")

    # ------------------------------------------------------------------ what is a list in Python and an array here

    def _copy_slices(self) -> None:
        """A slice of a list is a copy: it matters where items are set."""
        if not any(isinstance(node, cst.Subscript) and is_stored(self.module, node) for node in self.region.nodes):
            return
        for node in self.region.nodes:
            if isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Slice):
                above = self.module.parent(node)
                appended = is_append(self.module.parent(above)) if isinstance(above, cst.Arg) else False
                if appended or isinstance(above, (cst.Assign, cst.Element, cst.ListComp)):
                    self.edits[node] = lambda copied: cst.Call(cst.Attribute(copied, cst.Name("copy")))

    def _unpack_rows(self) -> None:
        """``for x, y in rows`` takes the items of a row one by one: the compiler does not know how many there are."""
        for node in self.region.nodes:
            if isinstance(node, cst.For):
                self._unpack_turns(node)
            elif isinstance(node, cst.Subscript) and self._is_slice_store(node):
                raise AnalysisRefused(f"line {self.module.first_line(node)} sets a slice")
            elif isinstance(node, cst.CompFor) and isinstance(node.target, (cst.Tuple, cst.List)):
                if self._row_targets(node.target, node.iter):
                    raise AnalysisRefused(f"line {self.module.first_line(node)} takes rows apart in a comprehension")
            elif isinstance(node, cst.Assign) and isinstance(node.targets[0].target, (cst.Tuple, cst.List)):
                self._unpack_value(node)

    def _compare_lengths(self) -> None:
        """``zip(a, b, strict=True)`` is ``zip(a, b)``, and a look at their lengths when the loop has ended."""
        for node in self.region.nodes:
            if strict_argument(self.module, node) is not None:
                self.edits[node] = without_strict
            if isinstance(node, cst.For) and zipped_strictly(self.module, node) is not None:
                self.edits[node] = both(self.edits.get(node), comparing(self.module, node, self._new_name))

    def _append_items(self) -> None:
        """``row += [a, b]`` appends them: only so does the compiler see what an empty list is for."""
        for node in self.region.nodes:
            line = self.module.parent(node)
            if (
                not isinstance(node, cst.AugAssign) or not isinstance(node.operator, cst.AddAssign)
                or not isinstance(node.target, cst.Name) or not isinstance(node.value, cst.List)
                or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1
            ):  # fmt: skip
                continue
            names = {part.value for part in self.module.inside(node.value) if isinstance(part, cst.Name)}
            if node.target.value not in names:
                self.edits[line] = _appending

    def _row_targets(self, target: cst.BaseExpression, values: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The parts of a loop's target that are bound to rows taken apart."""
        if not isinstance(target, (cst.Tuple, cst.List)):
            return []
        name = self.module.name(values) if isinstance(values, cst.Call) else ""
        if name not in ("builtins.enumerate", "builtins.zip"):
            return [target]
        inner = [argument.value for argument in values.args if not argument.keyword]  # type: ignore[attr-defined]
        if name == "builtins.enumerate":
            inner = [cst.Integer("0"), inner[0]]
        if len(inner) != len(target.elements):
            raise AnalysisRefused(f"line {self.module.first_line(target)} takes apart what is not paired here")
        return [
            row for element, of in zip(target.elements, inner) for row in self._row_targets(element.value, of)
        ]  # fmt: skip

    def _unpack_turns(self, loop: cst.For) -> None:
        rows = self._row_targets(loop.target, loop.iter)
        if not rows:
            return
        lines: list[cst.BaseStatement] = []
        for row in rows:
            name = self._new_name("row")
            self.edits[row] = put(cst.Name(name))
            lines += self._apart(name, row)

        def edit(changed: cst.For) -> cst.For:
            body = changed.body
            if not isinstance(body, cst.IndentedBlock):
                body = cst.IndentedBlock([cst.SimpleStatementLine(body.body)])  # type: ignore[arg-type]
            return changed.with_changes(body=body.with_changes(body=[*lines, *body.body]))

        self.edits[loop] = edit

    def _unpack_value(self, assign: cst.Assign) -> None:
        target = assign.targets[0].target
        if isinstance(assign.value, (cst.Tuple, cst.List)) or len(assign.targets) != 1:
            return
        line = self.module.parent(assign)
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise AnalysisRefused(f"line {self.module.first_line(assign)} takes a row apart among other things")
        name = self._new_name("row")
        self.edits[target] = put(cst.Name(name))
        self.edits[line] = followed_by(self._apart(name, target))

    def _apart(self, name: str, target: cst.BaseExpression) -> list[cst.BaseStatement]:
        """Statements that bind the names of a target to the items of a row."""
        assert isinstance(target, (cst.Tuple, cst.List))
        parts = [element.value for element in target.elements]
        if not all(isinstance(part, cst.Name) for part in parts):
            raise AnalysisRefused(f"line {self.module.first_line(target)} takes rows of rows apart")
        if any(self._has_items(name) for name in names_of(target)):
            raise AnalysisRefused(f"line {self.module.first_line(target)} takes rows apart that hold more than numbers")
        names = ", ".join(self.module.code(part) for part in parts)
        items = ", ".join(f"{name}[{place}]" for place in range(len(parts)))
        check = f'if len({name}) != {len(parts)}:\n    raise ValueError("not {len(parts)} values to unpack")\n'
        return [statement(self.module.tree, check), statement(self.module.tree, f"{names} = {items}")]

    def _has_items(self, name: str) -> bool:
        """Whether items of it, its length or its parts one after the other are asked for: it is no number."""
        for node in self.region.nodes:
            if not isinstance(node, cst.Name) or node.value != name:
                continue
            above = self.module.parent(node)
            call = self.module.parent(above) if isinstance(above, cst.Arg) else None
            is_iterated = isinstance(above, (cst.For, cst.CompFor)) and above.iter is node
            is_asked = isinstance(above, (cst.Subscript, cst.Attribute)) and above.value is node
            if is_asked or is_iterated or (call is not None and self.module.name(call) in _OF_ITEMS):
                return True
        return False

    def _is_slice_store(self, node: cst.Subscript) -> bool:
        return is_stored(self.module, node) and isinstance(node.slice[0].slice, cst.Slice)

    def _new_name(self, wanted: str) -> str:
        name = fresh_name(f"_{wanted}", self.used)
        self.used.add(name)
        return name

    # ------------------------------------------------------------------ what is written

    def definition(self) -> cst.FunctionDef:
        """The function that the statements have become."""
        for node in self.region.nodes:
            if isinstance(node, cst.GeneratorExp):
                self.edits[node] = lambda rewritten: cst.ListComp(rewritten.elt, rewritten.for_in)
        options = {"changed": self.changed, "written": self.written}
        given = ", ".join(f'{key}="{" ".join(sorted(names))}"' for key, names in options.items() if names)
        head = f"@_compiled({given})\ndef {self.name}({', '.join(self.arguments)}):\n    pass\n"
        body: list[cst.BaseStatement] = []
        for line in self.region.statements:
            rewritten = apply_edits(line, self.edits)
            body += rewritten.nodes if isinstance(rewritten, cst.FlattenSentinel) else [rewritten]
        if self.region.live_out:
            body.append(statement(self.module.tree, f"return {', '.join(self.region.live_out)}"))
        if not any(True for _ in self.arguments):
            raise AnalysisRefused(f"{self.region.function.name.value} computes with nothing that it is given")
        function = statement(self.module.tree, head)
        return function.with_changes(body=function.body.with_changes(body=body))

    def call_in_place(self) -> dict[cst.CSTNode, Edit]:
        """The edits that put a call in the place of the statements."""
        call = f"{self.name}({', '.join(self.arguments.values())})"
        if self.region.returns:
            call = f"return {call}"
        elif self.region.live_out:
            call = f"{', '.join(self.region.live_out)} = {call}"
        first, *others = self.region.statements
        blank = [line for line in first.leading_lines if line.comment is None]
        written = statement(self.module.tree, call).with_changes(leading_lines=blank)
        return {first: put(written), **{line: put() for line in others}}


def _chained(item: cst.Subscript) -> cst.BaseExpression:
    """``x[i, j]`` as ``x[i][j]``."""
    nested = item.value
    for element in item.slice:
        nested = cst.Subscript(nested, [element.with_changes(comma=cst.MaybeSentinel.DEFAULT)])
    return nested


def _appending(line: cst.SimpleStatementLine) -> cst.FlattenSentinel[cst.SimpleStatementLine]:
    """A statement that adds a list to another as one for each item."""
    (added,) = line.body
    assert isinstance(added, cst.AugAssign)
    assert isinstance(added.value, cst.List)
    append = cst.Attribute(added.target, cst.Name("append"))
    items = [cst.Expr(cst.Call(append, [cst.Arg(element.value)])) for element in added.value.elements]
    rest = [cst.SimpleStatementLine([item]) for item in items[1:]]
    return cst.FlattenSentinel([line.with_changes(body=items[:1]), *rest])
