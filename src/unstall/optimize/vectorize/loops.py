"""Find the element-wise nest of loops at a place in a function, and write it as array statements."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from unstall.optimize.source import edit
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.loops import RewrittenLoop, for_statement
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_definition
from unstall.optimize.vectorize.blocks import Block, names_of, source
from unstall.optimize.vectorize.cells import Axis, Cell, Cells
from unstall.optimize.vectorize.expressions import Expressions
from unstall.optimize.vectorize.functions import Functions

_MAX_AXES = 3


def vectorize(module: SourceModule, line: int) -> RewrittenLoop:
    """The array form of the outermost element-wise nest around a line of a module. Raises AnalysisRefused."""
    function, loops = _around(ast.parse(module.text), line)
    if function is None or not loops:
        raise AnalysisRefused(f"line {line} is in no loop of a function")
    numpy = module.alias("numpy")
    if numpy is None:
        raise AnalysisRefused("the module does not import NumPy")
    reasons = []
    for loop in loops:  # outermost first
        try:
            return _Nest(module, function, loop, numpy).vectorized()
        except AnalysisRefused as error:
            reasons.append(error)
    raise reasons[0]


def _around(tree: ast.Module, line: int) -> tuple[ast.FunctionDef | None, list[ast.For]]:
    """The innermost function around a line, and the loops in it that hold the line, outermost first."""
    holding = [node for node in ast.walk(tree) if holds(node, line)]
    functions = [node for node in holding if isinstance(node, ast.FunctionDef)]
    if not functions:
        return None, []
    function = max(functions, key=lambda node: node.lineno)
    loops = [node for node in holding if isinstance(node, ast.For) and node.lineno > function.lineno]
    return function, sorted(loops, key=lambda node: node.lineno)


def holds(node: ast.AST, line: int) -> bool:
    """Whether a line is among a node's."""
    return getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", 0) or 0)


class _Nest:
    """One nest of loops in a function."""

    def __init__(self, module: SourceModule, function: ast.FunctionDef, loop: ast.For, numpy: str):
        self.module, self.function, self.loop, self.numpy = module, function, loop, numpy
        self.axes, self.body = _axes(loop)
        self.cells = Cells(self.axes, _pixel_accesses(function))
        self.functions = Functions(module, numpy)
        self.assigned = set(names_of(self.body, ast.Store))
        self._check_independent()

    def vectorized(self) -> RewrittenLoop:
        """The nest's array form. Raises AnalysisRefused."""
        names: dict[str, str] = {}
        variables = frozenset(axis.variable for axis in self.axes)
        expressions = Expressions(self.numpy, names, self._load, self.functions, variables, self.module.resolve)
        block = Block(expressions, taken=_names(self.function))
        self._values_of_variables(block)
        self._arrays_read_often(block)
        writes: list[str] = []
        for statement in self.body:
            stored = _stored(self.cells, statement)
            if stored is None:
                self._statement(block, statement)
            else:
                writes += self._write(block, *stored)
        if not writes:
            raise AnalysisRefused("it writes no cell")
        inner = [*block.lines, *writes]
        lines = inner
        if any(word in line for line in inner for word in (" / ", " % ", " // ", "sqrt", "_array(")):
            # Every branch is computed for every cell; what is not selected may divide by zero.
            lines = [f'with {self.numpy}.errstate(all="ignore"):', *(f"    {line}" for line in inner)]
        return self._rewritten(lines)

    def _rewritten(self, lines: list[str]) -> RewrittenLoop:
        """The module with these lines in the loop's place, and with the functions that they need."""
        module, loop = self.module, for_statement(self.module, self.loop.lineno)
        statements = [edit.statement(module.tree, text) for text in _statements(lines)]
        statements[0] = statements[0].with_changes(leading_lines=loop.leading_lines)
        definitions = [edit.statement(module.tree, text) for text in self.functions.sources()]
        tree = with_definition(edit.replaced(module.tree, loop, *statements), *definitions)
        held = ((module.first_line(loop), module.last_line(loop)),)
        return RewrittenLoop(self.function.name, loop, tree, held, key=module.code(loop.iter))

    def _stores(self) -> list[tuple[Cell, ast.expr]]:
        """(cell, value) of each statement of the body that writes a cell."""
        return [stored for stored in (_stored(self.cells, statement) for statement in self.body) if stored is not None]

    def _values_of_variables(self, block: Block) -> None:
        """The loop's variables as arrays, where their values are computed with and not only indexed by."""
        used = _value_names(self.body, self.cells)
        for number, axis in enumerate(self.axes):
            if axis.variable in used:
                index = ["None"] * len(self.axes)
                index[number] = ":"
                suffix = "" if len(self.axes) == 1 else f"[{', '.join(index)}]"
                block.lines.append(f"{axis.variable} = {axis.values(self.numpy)}{suffix}")
                block.expressions.names[axis.variable] = axis.variable

    def _arrays_read_often(self, block: Block) -> None:
        """To make an array of a list takes about as long as a turn over it: it is made once, if the nest leaves it."""
        stored = {cell.base for cell, _ in self._stores()}
        cells_read = [cell for cell in map(self.cells.of, _expressions(self.body)) if cell is not None]
        places = Counter((cell.base, cell.kind) for cell in cells_read)
        for cell in cells_read:
            often = places[cell.base, cell.kind] > 1 and cell.kind != "array" and cell.base not in stored
            if often and (cell.base, cell.kind) not in self.cells.arrays:
                wanted = f"{cell.base.rpartition('.')[2]}_array"
                name = block.name(wanted, fresh=wanted in block.taken)
                block.lines.append(self.cells.name_array(cell, name, self.numpy))
                block.full_shape.add(name)

    def _statement(self, block: Block, statement: ast.stmt) -> None:
        """One statement of the body; an unpacked pixel becomes its channels."""
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List)):
            cell = self.cells.of(statement.value)
            if cell is not None:
                names = [source(target) for target in statement.targets[0].elts]
                channels = self.cells.read(cell, self.numpy, len(names))
                block.lines.append(f"{', '.join(names)} = {source(channels)}")
                block.expressions.names.update({name: name for name in names})
                block.taken.update(names)
                block.full_shape.update(names)
                return
        block.run([statement])
        if block.returns:
            raise AnalysisRefused(f"line {statement.lineno}: leaves the loop")

    def _load(self, node: ast.expr) -> ast.expr | None:
        cell = self.cells.of(node)
        return None if cell is None else self.cells.read(cell, self.numpy, None)

    def _write(self, block: Block, cell: Cell, value: ast.expr) -> list[str]:
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        arrays = [block.expressions(part) for part in parts]
        values = [(source(array), block.has_full_shape(array)) for array in arrays]
        if len(values) > 1 and cell.kind != "image":
            raise AnalysisRefused("it stores tuples in a list")
        image = self.module.alias("PIL.Image") if cell.kind == "image" else None
        return self.cells.write(cell, values, self.numpy, image)

    def _check_independent(self) -> None:
        """No turn may read what another wrote, or a name that an earlier turn set, and nothing may read such after."""
        cells = [cell for cell in map(self.cells.of, _expressions(self.body)) if cell is not None]
        stores = [cell for cell, _ in self._stores()]
        for store in stores:
            for cell in cells:
                if cell.base == store.base and cell.offsets != store.offsets:
                    raise AnalysisRefused(f"a turn reads what another wrote in {cell.base}")
        assigned_before: set[str] = set()
        for statement in self.body:
            early = (_read(statement) & self.assigned) - assigned_before - _surely_assigned_first(statement)
            if early:
                raise AnalysisRefused(f"a turn reads {', '.join(sorted(early))} of the turn before")
            assigned_before |= _surely_assigned(statement)
        bases = {cell.base for cell in stores}
        if bases & self.assigned:
            raise AnalysisRefused("it writes into what a turn makes anew")
        assigned_names = self.assigned | {axis.variable for axis in self.axes}
        read_later = read_after(self.function, self.loop)
        if assigned_names & read_later:
            raise AnalysisRefused(f"{', '.join(sorted(assigned_names & read_later))} is read after the loop")


def _stored(cells: Cells, statement: ast.stmt) -> tuple[Cell, ast.expr] | None:
    """(cell, value) of a statement that writes a cell. Raises AnalysisRefused where it is not the turn's own."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return cells.put(statement.value)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript):
            cell = cells.of(target)
            if cell is None:
                raise AnalysisRefused(f"line {statement.lineno}: writes {source(target)}, not its own cell")
            return cell, statement.value
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
        cell = cells.of(statement.target)
        if cell is None:
            raise AnalysisRefused(f"line {statement.lineno}: adds to {source(statement.target)}, not its own cell")
        load = ast.parse(source(statement.target), mode="eval").body
        return cell, ast.BinOp(load, statement.op, statement.value)
    return None


def _axes(loop: ast.For) -> tuple[list[Axis], list[ast.stmt]]:
    """The axes of a perfect nest of loops over ranges, and its innermost body."""
    axes: list[Axis] = []
    body: list[ast.stmt] = [loop]
    while len(body) == 1 and isinstance(body[0], ast.For) and len(axes) < _MAX_AXES:
        inner = body[0]
        axis = range_axis(inner)
        if axis is None or inner.orelse:
            break
        axes.append(axis)
        body = inner.body
    if not axes:
        raise AnalysisRefused(f"line {loop.lineno}: not a loop over a range")
    variables = [axis.variable for axis in axes]
    for axis in axes:
        inside = {node.id for part in (axis.begin, axis.end) for node in ast.walk(part) if isinstance(node, ast.Name)}
        if inside & set(variables):
            raise AnalysisRefused("the inner loop's range depends on the outer loop")
    return axes, body


def range_axis(loop: ast.For | ast.comprehension) -> Axis | None:
    """The axis of a loop over a range; None where it is over something else."""
    call = loop.iter
    if not (isinstance(loop.target, ast.Name) and isinstance(call, ast.Call) and source(call.func) == "range"):
        return None
    if not 1 <= len(call.args) <= 2 or call.keywords:
        return None
    begin: ast.expr = call.args[0] if len(call.args) == 2 else ast.Constant(0)
    return Axis(loop.target.id, begin, call.args[-1])


def _read(statement: ast.AST) -> set[str]:
    read_names = set(names_of([statement], ast.Load))
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        read_names.add(statement.target.id)
    return read_names


def _surely_assigned(statement: ast.stmt) -> set[str]:
    """Names that a statement sets on every path through it."""
    if isinstance(statement, ast.If):
        branches = (statement.body, statement.orelse)
        yes, no = (set[str]().union(*map(_surely_assigned, branch)) for branch in branches)
        return yes & no
    if isinstance(statement, ast.Assign):
        return set(names_of(statement.targets, ast.Store))
    return set()


def _surely_assigned_first(statement: ast.stmt) -> set[str]:
    """Names that each branch of an ``if`` sets before it reads them."""
    if not isinstance(statement, ast.If):
        return set()
    first: set[str] = set()
    for branch in (statement.body, statement.orelse):
        assigned_before: set[str] = set()
        for inner in branch:
            first |= _surely_assigned(inner) - (_read(inner) - assigned_before)
            assigned_before |= _surely_assigned(inner)
    return first - _read(statement.test)


def read_after(function: ast.FunctionDef, loop: ast.For) -> set[str]:
    """Names that the function reads after the loop, or, inside an outer loop, before it sets them anew."""
    end = loop.end_lineno or loop.lineno
    outer = any(
        isinstance(node, (ast.For, ast.While)) and node is not loop and holds(node, loop.lineno)
        and (node.end_lineno or 0) >= end for node in ast.walk(function)
    )  # fmt: skip
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return {node.id for node in names if node.lineno > end or (outer and node.lineno < loop.lineno)}


def _value_names(body: list[ast.stmt], cells: Cells) -> set[str]:
    """Names that are read as values, not as the index of a cell."""
    value_names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.expr) and cells.of(node) is not None:
            return
        if isinstance(node, ast.Call):
            put = cells.put(node)
            if put is not None:
                visit(put[1])
                return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value_names.add(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in body:
        visit(statement)
    return value_names


def _expressions(body: list[ast.stmt]) -> Iterator[ast.expr]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr):
                yield node


def _names(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} | {
        node.arg for node in ast.walk(function) if isinstance(node, ast.arg)
    }


def _pixel_accesses(function: ast.FunctionDef) -> dict[str, str]:
    """Names set to ``image.load()``, and the image."""
    images = {}
    for node in ast.walk(function):
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
            continue
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and source(call).endswith(".load()"):
            images[node.targets[0].id] = source(call.func.value)
    return images


def _statements(lines: list[str]) -> Iterator[str]:
    """Lines joined to statements: an indented line, or a closing bracket, belongs to the statement above."""
    current: list[str] = []
    for line in lines:
        if current and not line.startswith((" ", ")", "]")):
            yield "\n".join(current) + "\n"
            current = []
        current.append(line)
    if current:
        yield "\n".join(current) + "\n"
