"""Objects that a function makes anew in every call, from what is the same each time, and the same made once.

``features = BuildFeatureFactory(path)`` in a dataset's ``__getitem__``: what it is given comes from imports, constants
and the attributes of ``self``. A function at the top level makes it, and remembers it by those attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import Assignment, ImportAssignment

from unstall.optimize.source.bindings import assigned, may_change_in_place
from unstall.optimize.source.edit import apply_edits, edited, put, statement
from unstall.optimize.source.effects import Effect, effect_of
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.toplevel import with_definition, with_runtime

_CONSTANTS = ("None", "True", "False")
_DEPENDS = Effect.RANDOM | Effect.CLOCK | Effect.ORDERED | Effect.ACTS
"""Effects of a call that may not be made once for all."""
_KEEPS = frozenset({"append", "add", "extend", "insert", "put", "setdefault", "update", "push", "send"})
"""Methods that keep what they are given."""
_CANNOT = (
    cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.Await, cst.Yield, cst.NamedExpr,
    cst.StarredElement, cst.StarredDictElement, cst.FormattedString,
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A statement ``name = Maker(...)`` whose value depends on imports, constants and attributes of ``self`` alone."""

    function: cst.FunctionDef
    line: cst.SimpleStatementLine
    call: cst.Call
    name: cst.Name
    substituted: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    """What stands in the function that makes it for names of this one: their values, or its parameters."""
    given: dict[str, str] = field(default_factory=dict)
    """The parameters, by the attribute of ``self`` that each is given."""


def made_in(module: SourceModule, function: cst.FunctionDef) -> Iterator[Made]:
    """The statements of a function that make such an object and do nothing else."""
    for node in module.inside(function.body):
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and len(node.targets) == 1:
            target, line = node.targets[0].target, module.statement(node)
            is_alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
            if isinstance(target, cst.Name) and is_alone and module.enclosing(node, cst.FunctionDef) is function:
                assert isinstance(line, cst.SimpleStatementLine)
                made = Made(function, line, node.value, target)
                if _is_library_call(module, node.value) and _is_fixed(module, made, node.value):
                    yield made


def refuse_kept(module: SourceModule, made: Made) -> None:
    """Raise AnalysisRefused where the object leaves the function, or may be changed in it."""
    name = made.name.value
    for node in module.uses(name, made.function):
        if node is made.name:
            continue
        above = module.parent(node)
        call = module.parent(above) if isinstance(above, cst.Arg) else None
        is_method = isinstance(above, cst.Attribute) and above.value is node
        is_called = isinstance(above, cst.Call) and above.func is node
        is_given = isinstance(call, cst.Call) and dotted(call.func).rpartition(".")[2] not in _KEEPS
        if may_change_in_place(module, node):
            raise AnalysisRefused(f"line {module.first_line(node)} changes {name}")
        if not (is_method or is_called or is_given):
            raise AnalysisRefused(f"line {module.first_line(node)}: {name} may be kept elsewhere")


def making_once(module: SourceModule, made: Made) -> cst.Module:
    """The tree in which a function at the top level makes it and remembers it. Raises NameTaken where names clash."""
    taken = {node.value for node in module.all(cst.Name)}
    maker = dotted(made.call.func).rpartition(".")[2]
    name = fresh_name(f"_{made.name.value}_of_{maker}", taken)
    value = module.code(apply_edits(made.call, {node: put(new) for node, new in made.substituted.items()}))
    definition = statement(
        module.tree, f"@_MadeOnce\ndef {name}({', '.join(made.given.values())}):\n    return {value}"
    )
    called = cst.parse_expression(f"{name}({', '.join(made.given)})", config=module.tree.config_for_parsing)
    return with_runtime(with_definition(edited(module.tree, {made.call: put(called)}), definition), "made_once")


def _is_library_call(module: SourceModule, call: cst.Call) -> bool:
    """Whether what is called comes from an import, and neither draws, acts nor asks the time."""
    return _is_imported(module, call.func) and not effect_of(module.name(call)) & _DEPENDS


def _is_imported(module: SourceModule, node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    bindings = module.bindings(node) if isinstance(node, cst.Name) else []
    return bool(bindings) and all(isinstance(binding, ImportAssignment) for binding in bindings)


def _is_fixed(module: SourceModule, made: Made, expression: cst.BaseExpression) -> bool:
    """Whether an expression has the same value in every call of the function; what to put for its names is noted."""
    nodes = module.inside(expression)
    if any(isinstance(node, _CANNOT) or (isinstance(node, cst.Arg) and node.star) for node in nodes):
        return False
    calls = [node for node in nodes if isinstance(node, cst.Call)]
    if not all(_is_library_call(module, call) for call in calls):
        return False
    return all(_is_fixed_name(module, made, node) for node in _references(module, nodes))


def _references(module: SourceModule, nodes: list[cst.CSTNode]) -> Iterator[cst.Name | cst.Attribute]:
    """The dotted names, whole."""
    for node in nodes:
        if isinstance(node, (cst.Name, cst.Attribute)) and dotted(node) and module.context(node) is not None:
            above = module.parent(node)
            if not (isinstance(above, cst.Attribute) and dotted(above)):
                yield node


def _is_fixed_name(module: SourceModule, made: Made, node: cst.Name | cst.Attribute) -> bool:
    head, _, rest = dotted(node).partition(".")
    if _is_imported(module, node) or head in _CONSTANTS:
        return True
    if rest and "." not in rest and head == _first_parameter(module, made.function):
        parameter = made.given.setdefault(f"{head}.{rest}", rest.lstrip("_") or rest)
        made.substituted[node] = cst.Name(parameter)
        return True
    if rest or not isinstance(node, cst.Name):
        return False
    bindings = module.bindings(node)
    binding = bindings[0] if len(bindings) == 1 else None
    bound = binding.node if isinstance(binding, Assignment) else None
    value = assigned(module, bound) if isinstance(bound, cst.Name) else None
    if value is None or _is_later(module, value, made):
        return False
    if bindings[0].scope is module.global_scope:
        return isinstance(value, (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString, cst.UnaryOperation))
    if not _is_fixed(module, made, value):
        return False
    made.substituted[node] = apply_edits(value, {name: put(new) for name, new in made.substituted.items()})
    return True


def _first_parameter(module: SourceModule, function: cst.FunctionDef) -> str:
    """``self`` of a method; empty for other functions."""
    parameters = function.params.params
    is_method = isinstance(module.enclosing(function, cst.ClassDef, cst.FunctionDef), cst.ClassDef)
    return parameters[0].name.value if is_method and parameters and not function.decorators else ""


def _is_later(module: SourceModule, value: cst.BaseExpression, made: Made) -> bool:
    """Whether a value may not have been assigned when the object is made: below it, or in a branch of its own."""
    block = module.parent(module.statement(value))
    is_around = block is module.tree or block in list(module.ancestors(made.line))
    return module.first_line(value) > module.first_line(made.line) or not is_around
