"""Find the element-wise nest of loops at a place in a function, and write it as array statements."""

from __future__ import annotations

from collections import Counter

import libcst as cst
import libcst.matchers as m
from libcst.metadata import ExpressionContext

from unstall.optimize.source import edit
from unstall.optimize.source.bindings import names_of
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.loops import RewrittenLoop
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.purity import names
from unstall.optimize.source.toplevel import with_definition
from unstall.optimize.vectorize.blocks import Block
from unstall.optimize.vectorize.cells import Axis, Cell, Cells
from unstall.optimize.vectorize.expressions import Expressions
from unstall.optimize.vectorize.functions import Functions
from unstall.optimize.vectorize.syntax import Step, branches, elements, single_target, source, steps

_LOAD, _STORE = ExpressionContext.LOAD, ExpressionContext.STORE
_MAX_AXES = 3
_PIXELS = m.Assign(
    [m.AssignTarget(m.SaveMatchedNode(m.Name(), "pixels"))],
    m.Call(m.Attribute(m.SaveMatchedNode(m.DoNotCare(), "image"), m.Name("load")), []),
)
"""``pixels = image.load()``."""


def vectorize(module: SourceModule, line: int) -> RewrittenLoop:
    """The array form of the outermost element-wise nest around a line of a module. Raises AnalysisRefused."""
    function = module.innermost(line, cst.FunctionDef)
    loops = loops_around(module, function, line) if function is not None else []
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


def loops_around(module: SourceModule, function: cst.FunctionDef, line: int) -> list[cst.For]:
    """The loops of a function that hold a line, outermost first."""
    loops = (node for node in module.inside(function) if isinstance(node, cst.For) and node.asynchronous is None)
    return [loop for loop in loops if module.is_on(loop, line)]


class _Nest:
    """One nest of loops in a function."""

    def __init__(self, module: SourceModule, function: cst.FunctionDef, loop: cst.For, numpy: str):
        self.module, self.function, self.loop, self.numpy = module, function, loop, numpy
        self.axes, self.body = _axes(module, loop)
        self.nodes = [node for step in self.body for node in module.inside(step)]
        pixels = {source(found["pixels"]): source(found["image"]) for found in m.extractall(function, _PIXELS)}  # type: ignore[arg-type]
        self.cells = Cells(self.axes, pixels)
        self.functions = Functions(module, numpy)
        self.assigned = set(names(module, self.body, _STORE))
        self.cells_named = [cell for cell in map(self.cells.of, self.nodes) if cell is not None]
        self.stores = [stored[0] for stored in map(self._stored, self.body) if stored is not None]
        self._check_independent()

    def vectorized(self) -> RewrittenLoop:
        """The nest's array form. Raises AnalysisRefused."""
        variables = frozenset(axis.variable for axis in self.axes)
        expressions = Expressions(self.module, self.numpy, {}, self._load, self.functions, variables)
        inside = (node for node in self.module.inside(self.function) if isinstance(node, cst.Name))
        block = Block(expressions, taken={node.value for node in inside if self.module.context(node) is not None})
        self._values_of_variables(block)
        self._arrays_read_often(block)
        writes: list[str] = []
        for step in self.body:
            stored = self._stored(step)
            if stored is None:
                self._step(block, step)
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
        module, loop = self.module, self.loop
        first, *others = cst.parse_module("\n".join(lines), config=module.tree.config_for_parsing).body
        statements = [first.with_changes(leading_lines=loop.leading_lines), *others]
        definitions = [edit.statement(module.tree, text) for text in self.functions.sources()]
        tree = with_definition(edit.replaced(module.tree, loop, *statements), *definitions)
        held = ((module.first_line(loop), module.last_line(loop)),)
        return RewrittenLoop(self.function.name.value, loop, tree, held, key=module.code(loop.iter))

    def _values_of_variables(self, block: Block) -> None:
        """The loop's variables as arrays, where their values are computed with and not only indexed by."""
        used = self._computed_with()
        for number, axis in enumerate(self.axes):
            if axis.variable in used:
                index = ["None"] * len(self.axes)
                index[number] = ":"
                suffix = "" if len(self.axes) == 1 else f"[{', '.join(index)}]"
                block.lines.append(f"{axis.variable} = {axis.values(self.numpy)}{suffix}")
                block.expressions.names[axis.variable] = axis.variable

    def _arrays_read_often(self, block: Block) -> None:
        """To make an array of a list takes about as long as a turn over it: it is made once, if the nest leaves it."""
        stored = {cell.base for cell in self.stores}
        places = Counter((cell.base, cell.kind) for cell in self.cells_named)
        for cell in self.cells_named:
            often = places[cell.base, cell.kind] > 1 and cell.kind != "array" and cell.base not in stored
            if often and (cell.base, cell.kind) not in self.cells.arrays:
                wanted = f"{cell.base.rpartition('.')[2]}_array"
                name = block.name(wanted, fresh=wanted in block.taken)
                block.lines.append(self.cells.name_array(cell, name, self.numpy))
                block.full_shape.add(name)

    def _step(self, block: Block, step: Step) -> None:
        """One statement of the body; an unpacked pixel becomes its channels."""
        target = single_target(step)
        cell = self.cells.of(step.value) if isinstance(step, cst.Assign) and isinstance(target, cst.Tuple) else None
        if cell is None or target is None:
            block.run([step])
            if block.returns:
                raise AnalysisRefused(f"line {self.module.first_line(step)}: leaves the loop")
            return
        channels = [source(part) for part in elements(target)]
        pixels = self.cells.read(cell, self.numpy, len(channels))
        block.lines.append(f"{', '.join(channels)} = {source(pixels)}")
        block.expressions.names.update({name: name for name in channels})
        block.taken.update(channels)
        block.full_shape.update(channels)

    def _load(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        cell = self.cells.of(node)
        return None if cell is None else self.cells.read(cell, self.numpy, None)

    def _write(self, block: Block, cell: Cell, value: cst.BaseExpression | cst.AugAssign) -> list[str]:
        translate = block.expressions.augmented if isinstance(value, cst.AugAssign) else block.expressions
        arrays = elements(translate(value))  # type: ignore[arg-type]
        values = [(source(array), block.has_full_shape(array)) for array in arrays]
        if len(values) > 1 and cell.kind != "image":
            raise AnalysisRefused("it stores tuples in a list")
        image = self.module.alias("PIL.Image") if cell.kind == "image" else None
        return self.cells.write(cell, values, self.numpy, image)

    def _check_independent(self) -> None:
        """No turn may read what another wrote, or a name that an earlier turn set, and nothing may read such after."""
        for store in self.stores:
            for cell in self.cells_named:
                if cell.base == store.base and cell.offsets != store.offsets:
                    raise AnalysisRefused(f"a turn reads what another wrote in {cell.base}")
        assigned_before: set[str] = set()
        for step in self.body:
            early = (self._read(step) & self.assigned) - assigned_before - self._surely_assigned_first(step)
            if early:
                raise AnalysisRefused(f"a turn reads {', '.join(sorted(early))} of the turn before")
            assigned_before |= _surely_assigned(step)
        if any(cell.base in self.assigned for cell in self.stores):
            raise AnalysisRefused("it writes into what a turn makes anew")
        assigned_names = self.assigned | {axis.variable for axis in self.axes}
        read_later = read_after(self.module, self.function, self.loop)
        if assigned_names & read_later:
            raise AnalysisRefused(f"{', '.join(sorted(assigned_names & read_later))} is read after the loop")

    def _stored(self, step: Step) -> tuple[Cell, cst.BaseExpression | cst.AugAssign] | None:
        """(cell, value) of a statement that writes a cell. Raises AnalysisRefused where it is not the turn's own."""
        if isinstance(step, cst.Expr):
            return self.cells.put(step.value)
        target = step.target if isinstance(step, cst.AugAssign) else single_target(step)
        if not isinstance(step, (cst.Assign, cst.AugAssign)) or not isinstance(target, cst.Subscript):
            return None
        cell = self.cells.of(target)
        if cell is None:
            raise AnalysisRefused(f"line {self.module.first_line(step)}: writes {source(target)}, not its own cell")
        return cell, step.value if isinstance(step, cst.Assign) else step

    def _computed_with(self) -> set[str]:
        """Names that are read as values, not as the index of a cell."""
        cells = [node for node in self.nodes if self.cells.of(node) is not None]
        cells += [node.args[0] for node in self.nodes if self.cells.put(node) is not None]  # type: ignore[attr-defined]
        as_index = {inner for cell in cells for inner in self.module.inside(cell)}
        values = (node for node in self.nodes if isinstance(node, cst.Name) and node not in as_index)
        return {node.value for node in values if self.module.context(node) is _LOAD}

    def _read(self, step: cst.CSTNode) -> set[str]:
        updated = names_of(step.target) if isinstance(step, cst.AugAssign) else ()
        return {*names(self.module, [step], _LOAD), *updated}

    def _surely_assigned_first(self, step: Step) -> set[str]:
        """Names that each branch of an ``if`` sets before it reads them."""
        first: set[str] = set()
        for branch in branches(step) if isinstance(step, cst.If) else ():
            assigned_before: set[str] = set()
            for inner in branch:
                first |= _surely_assigned(inner) - (self._read(inner) - assigned_before)
                assigned_before |= _surely_assigned(inner)
        return first - self._read(step.test) if isinstance(step, cst.If) else first


def _axes(module: SourceModule, loop: cst.For) -> tuple[list[Axis], list[Step]]:
    """The axes of a perfect nest of loops over ranges, and its innermost body."""
    axes: list[Axis] = []
    body: list[Step] = [loop]
    while len(body) == 1 and isinstance(inner := body[0], cst.For) and len(axes) < _MAX_AXES:
        axis = range_axis(module, inner)
        if axis is None or inner.orelse:
            break
        axes.append(axis)
        body = steps(inner.body)
    if not axes:
        raise AnalysisRefused(f"line {module.first_line(loop)}: not a loop over a range")
    if any(axis.variable in other.names for axis in axes for other in axes):
        raise AnalysisRefused("the inner loop's range depends on the outer loop")
    return axes, body


def range_axis(module: SourceModule, loop: cst.For | cst.CompFor) -> Axis | None:
    """The axis of a loop over a range; None where it is over something else."""
    call = loop.iter
    if not isinstance(loop.target, cst.Name) or not isinstance(call, cst.Call) or module.name(call) != "builtins.range":
        return None
    if not 1 <= len(call.args) <= 2 or any(arg.keyword is not None or arg.star for arg in call.args):
        return None
    *begin, end = [arg.value for arg in call.args]
    return Axis(loop.target.value, begin[0] if begin else cst.Integer("0"), end)


def _surely_assigned(step: Step) -> set[str]:
    """Names that a statement sets on every path through it."""
    if isinstance(step, cst.If):
        yes, no = (set[str]().union(*map(_surely_assigned, branch)) for branch in branches(step))
        return yes & no
    if isinstance(step, cst.Assign):
        return set().union(*(names_of(target.target) for target in step.targets))
    return set()


def read_after(module: SourceModule, function: cst.FunctionDef, loop: cst.For) -> set[str]:
    """Names that the function reads after the loop, or, inside an outer loop, before it sets them anew."""
    nodes, inside = module.inside(function), module.inside(loop)
    first = nodes.index(loop)
    around = next(node for node in module.ancestors(loop) if isinstance(node, (cst.For, cst.While, cst.FunctionDef)))
    others = nodes[first + len(inside) :] + (nodes[:first] if around is not function else [])
    return {node.value for node in others if isinstance(node, cst.Name) and module.context(node) is _LOAD}
