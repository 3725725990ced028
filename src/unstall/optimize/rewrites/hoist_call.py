"""Calls of a layer that a loop or a comprehension makes in every turn with the same arguments, and the same before it.

Loop-invariant code motion, for calls of ``self.layer(...)``: what they compute does not depend on the turn, as far as
names tell; whether the layer draws random numbers or keeps state, a trial shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.optimize.source.bindings import may_change_in_place, names_of
from unstall.optimize.source.edit import Edit, edited, preceded_by, put, statement
from unstall.optimize.source.module import SourceModule, is_reference, root
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.purity import is_stored

Loop = cst.For | cst.ListComp | cst.SetComp | cst.DictComp
_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp)
_OTHERWISE = (cst.Lambda, cst.IfExp, cst.BooleanOperation, cst.GeneratorExp)
"""What is in these may be evaluated later, or not at all."""


def invariant_calls(module: SourceModule) -> Iterator[tuple[cst.Call, Loop]]:
    """The calls in a file, each with the loop before which it may be made."""
    for call in module.all(cst.Call):
        loop = _turns(module, call)
        if loop is not None and _is_of_layer(call) and _stays(module, call, loop):
            yield call, loop


def hoisted(module: SourceModule, found: Sequence[tuple[cst.Call, Loop]]) -> cst.Module:
    """The tree in which each of these calls is made once, before its loop."""
    taken = {node.value for node in module.all(cst.Name)}
    before: dict[cst.CSTNode, dict[str, str]] = {}
    edits: dict[cst.CSTNode, Edit] = {}
    for call, loop in found:
        assert isinstance(call.func, cst.Attribute)
        made = before.setdefault(module.statement(loop), {})
        code = module.code(call)
        if code not in made:
            made[code] = fresh_name(f"{call.func.attr.value.strip('_')}_result", taken)
            taken.add(made[code])
        edits[call] = put(cst.Name(made[code]))
    for line, made in before.items():
        lines = [statement(module.tree, f"{name} = {code}") for code, name in made.items()]
        edits[line] = preceded_by(lines)
    return edited(module.tree, edits)


def _turns(module: SourceModule, call: cst.Call) -> Loop | None:
    """The loop that makes the call in each of its turns in any case; None where that is not certain."""
    inner: cst.CSTNode = call
    loop: Loop | None = None
    for outer in module.ancestors(call):
        if isinstance(outer, _OTHERWISE):
            return None
        if isinstance(outer, _COMPREHENSIONS):
            if loop is not None or inner is outer.for_in or outer.for_in.ifs or outer.for_in.inner_for_in is not None:
                return None
            loop = outer
        elif isinstance(outer, cst.SimpleStatementLine):
            return loop if loop is not None else _loop_of(module, outer)
        elif isinstance(outer, cst.BaseStatement):
            return None
        inner = outer
    return None


def _loop_of(module: SourceModule, line: cst.SimpleStatementLine) -> cst.For | None:
    """The loop whose body holds the statement, with nothing before it that may leave a turn."""
    block = module.parent(line)
    loop = module.parent(block) if isinstance(block, cst.IndentedBlock) else None
    if not isinstance(loop, cst.For) or loop.body is not block or loop.asynchronous is not None:
        return None
    leaves = (cst.Break, cst.Continue, cst.Return, cst.Raise)
    before = loop.body.body[: loop.body.body.index(line)]
    return None if any(isinstance(node, leaves) for part in before for node in module.inside(part)) else loop


def _is_of_layer(call: cst.Call) -> bool:
    """Whether it is ``self.layer(x, ...)``, of names and attributes alone."""
    is_attribute = isinstance(call.func, cst.Attribute) and root(call.func) == "self" and is_reference(call.func)
    return is_attribute and bool(call.args) and all(not arg.star and is_reference(arg.value) for arg in call.args)


def _stays(module: SourceModule, call: cst.Call, loop: Loop) -> bool:
    """Whether no turn binds or changes what the call is given."""
    given = {root(arg.value) for arg in call.args}
    if not isinstance(loop, cst.For):
        return not given & names_of(loop.for_in.target)
    if (given | {"self"}) & names_of(loop.target):
        return False
    own = {*module.inside(call)}
    for node in module.inside(loop.body):
        name = root(node)
        if (
            node in own
            or name not in (*given, "self")
            or not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript))
        ):
            continue
        if is_stored(module, node) or (name in given and may_change_in_place(module, node)):
            return False
    return True
