"""What the names of a function stand for: whether that stays the same while the program runs, as its source shows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst
from libcst.metadata import Assignment, BaseAssignment, ExpressionContext

from unstall.optimize.source.edit import keyword
from unstall.optimize.source.effects import Effect, effect_of, is_in_place
from unstall.optimize.source.module import SourceModule

_LOOPS = (cst.For, cst.While, cst.CompFor)
_STRING_METHODS = frozenset(dir(str))


def changing_name(module: SourceModule, function: cst.FunctionDef) -> str | None:
    """A name that a function reads of the scopes around it, and that may stand for something else another time.

    It is bound twice or in a loop, changed in place, or is a variable that the function calls: a model, say, of which
    is not seen what it holds.
    """
    for name, assignment in _outer_variables(module, function):
        if _is_rebound(module, assignment):
            return name.value
        if _is_called(module, name):
            return name.value
        for access in assignment.references:
            if function not in module.ancestors(access.node) and changes_in_place(module, access.node):
                return name.value
    return None


def _outer_variables(module: SourceModule, function: cst.FunctionDef) -> Iterator[tuple[cst.Name, Assignment]]:
    """(where it is read, what binds it) of the function's names that are variables of the scopes around it."""
    inside = module.inside(function.body)
    for name in (node for node in module.all(cst.Name) if node in inside):
        for assignment in module.bindings(name):
            if not isinstance(assignment, Assignment) or not _is_variable(assignment):
                continue
            if function not in module.ancestors(assignment.node):
                yield name, assignment


def _is_variable(assignment: BaseAssignment) -> bool:
    """Whether a name is bound by an assignment, a loop or a ``with``: not by an import, a ``def`` or a ``class``."""
    return isinstance(assignment, Assignment) and isinstance(assignment.node, (cst.Name, cst.Attribute))


def _is_rebound(module: SourceModule, assignment: Assignment) -> bool:
    assignments = [candidate for candidate in assignment.scope[assignment.name] if _is_variable(candidate)]
    return len(assignments) > 1 or any(isinstance(node, _LOOPS) for node in module.ancestors(assignment.node))


def _is_called(module: SourceModule, name: cst.Name) -> bool:
    above = module.parent(name)
    return isinstance(above, cst.Call) and above.func is name


def names_of(target: cst.BaseExpression) -> set[str]:
    """The names that a target binds."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return set().union(*(names_of(element.value) for element in target.elements))
    return {target.value} if isinstance(target, cst.Name) else set()


def only_names(target: cst.BaseExpression) -> list[str]:
    """The names of a target that is one or several, in order; none where it binds an item, an attribute or a tuple."""
    parts = [element.value for element in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    names = [part.value for part in parts if isinstance(part, cst.Name)]
    return names if len(names) == len(parts) else []


def changes_in_place(module: SourceModule, node: cst.CSTNode) -> bool:
    """Whether what a name stands for is changed where it stands: an item or attribute is set, or a method does it."""
    above = module.parent(node)
    while isinstance(above, (cst.Attribute, cst.Subscript, cst.Call)):
        if isinstance(above, cst.Call):
            if above.func is not node:
                return False
            if mutates(above):
                return True
        elif above.value is not node:
            return False
        elif module.context(above) in (ExpressionContext.STORE, ExpressionContext.DEL):
            return True
        node, above = above, module.parent(above)
    return False


def may_change_in_place(module: SourceModule, node: cst.CSTNode) -> bool:
    """Whether what an expression stands for is changed there: by a statement, a method, or as a call's ``out``."""
    above = module.parent(node)
    is_added_to = isinstance(above, cst.AugAssign) and above.target is node
    is_out = isinstance(above, cst.Arg) and above.keyword is not None and above.keyword.value == "out"
    return is_added_to or is_out or changes_in_place(module, node)


def mutates(call: cst.Call) -> bool:
    """Whether a method changes the object that it is called of, by its name or because it is told to."""
    if not isinstance(call.func, cst.Attribute):
        return False
    name = f".{call.func.attr.value}"
    return is_in_place(name) or bool(effect_of(name) & Effect.MUTATES) or keyword(call, "inplace") is not None


def assigned(module: SourceModule, name: cst.CSTNode) -> cst.BaseExpression | None:
    """The value of the plain assignment that a name is the only target of; None where it is none."""
    target = module.parent(name)
    above = module.parent(target) if isinstance(target, cst.AssignTarget) else None
    return above.value if isinstance(above, cst.Assign) and len(above.targets) == 1 else None


def bound_just_before(
    module: SourceModule, node: cst.BaseExpression
) -> tuple[cst.BaseExpression, cst.SimpleStatementLine | None]:
    """What a name stands for that the statement before binds, for this use alone, and the statement; else itself.

    A statement with a comment above is none of these: who takes it away takes the comment.
    """
    function = module.enclosing(node, cst.FunctionDef)
    uses = module.uses(node.value, function) if isinstance(node, cst.Name) and function is not None else []
    value = assigned(module, uses[0]) if len(uses) == 2 else None
    if value is None:
        return node, None
    here, line = module.statement(node), module.statement(uses[0])
    follows = (line, here) in pairwise(getattr(module.parent(here), "body", ()))
    if not isinstance(here, cst.SimpleStatementLine) or not isinstance(line, cst.SimpleStatementLine):
        return node, None
    return (value, line) if follows and len(line.body) == 1 and not line.leading_lines else (node, None)


# ------------------------------------------------------------------ lists that stay as they are


def constant_arguments(module: SourceModule, function: cst.FunctionDef) -> set[int]:
    """Positions at which every call of a function is given a variable that is bound once, outside of its loop.

    Empty where a call has keywords or starred arguments, where the function is used otherwise than called, and where
    one of the variables may be changed.
    """
    calls: list[cst.Call] = []
    for assignment in module.global_scope[function.name.value]:
        for access in assignment.references:
            call = module.parent(access.node)
            if not (isinstance(call, cst.Call) and call.func is access.node):
                return set()
            calls.append(call)
    if not calls or any(arg.keyword is not None or arg.star for call in calls for arg in call.args):
        return set()
    shortest = min(len(call.args) for call in calls)
    variables = {
        position: [_variable(module, call, call.args[position].value) for call in calls] for position in range(shortest)
    }
    held = {position for position, assignments in variables.items() if None not in assignments}
    held_variables = {assignment for position in held for assignment in variables[position] if assignment is not None}
    unchanged = all(_is_left_alone(module, assignment, function.name.value) for assignment in held_variables)
    return held if unchanged else set()


def _variable(module: SourceModule, call: cst.Call, argument: cst.BaseExpression) -> Assignment | None:
    """What binds an argument, if it is a name that is bound in one place, which no loop around the call holds."""
    if not isinstance(argument, cst.Name):
        return None
    bound = module.bindings(argument)
    if len(bound) != 1 or not isinstance(bound[0], Assignment) or not isinstance(bound[0].node, cst.Name):
        return None
    loops = {node for node in module.ancestors(call) if isinstance(node, _LOOPS)}
    return None if loops.intersection(module.ancestors(bound[0].node)) else bound[0]


def _is_left_alone(module: SourceModule, assignment: Assignment, function: str) -> bool:
    """Whether nothing in the module may change what a variable stands for, or give it to what may."""
    return all(_only_reads(module, access.node, function) for access in assignment.references)


def _only_reads(module: SourceModule, node: cst.CSTNode, function: str) -> bool:
    above = module.parent(node)
    if isinstance(above, cst.Subscript) and above.value is node:
        return module.context(above) is ExpressionContext.LOAD and not _element_changes(module, above)
    if isinstance(above, cst.Attribute):
        called = module.parent(above)
        reads = bool(effect_of(f".{above.attr.value}") & Effect.READS)
        return isinstance(called, cst.Call) and called.func is above and reads
    if isinstance(above, (cst.For, cst.CompFor)):
        return above.iter is node
    if isinstance(above, cst.Arg):
        call = module.parent(above)
        is_positional = isinstance(call, cst.Call) and above.keyword is None and not above.star
        if not is_positional or not isinstance(call, cst.Call):
            return False
        name = module.name(call)
        return name == function or ("." in name and bool(effect_of(name) & Effect.READS))
    return isinstance(above, (cst.Comparison, cst.ComparisonTarget, cst.BooleanOperation, cst.UnaryOperation))


def _element_changes(module: SourceModule, element: cst.CSTNode) -> bool:
    """Whether an element is set at an index, or a method of it is called: it may be a list itself."""
    above = module.parent(element)
    if isinstance(above, cst.Subscript) and above.value is element:
        return module.context(above) is not ExpressionContext.LOAD or _element_changes(module, above)
    if not isinstance(above, cst.Attribute):
        return False
    return above.attr.value not in _STRING_METHODS and not effect_of(f".{above.attr.value}") & Effect.READS
