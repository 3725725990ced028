"""A list comprehension that calls a model, written as the loop that it is: ``[model(x) for x in rows]``."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import ExpressionContext, Scope

from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.purity import names

_INNER = (cst.BaseComp, cst.Lambda, cst.BaseStatement)
_AT_ONCE = (cst.BaseNumber, cst.BaseString)


def unrolled(module: SourceModule, call: cst.Call) -> SourceModule:
    """The module with the list comprehension around a call as a loop before its statement; as it is where none is.

    The call is the same node in both. Raises AnalysisRefused where a loop would not do the same.
    """
    comprehension = next((node for node in module.ancestors(call) if isinstance(node, _INNER)), None)
    if not isinstance(comprehension, cst.ListComp) or call not in module.inside(comprehension.elt):
        return module
    turn = comprehension.for_in
    if turn.ifs or turn.inner_for_in is not None or turn.asynchronous is not None:
        raise AnalysisRefused(_line(module, call, "the comprehension has conditions, or loops of its own"))
    line = _statement(module, comprehension)
    _check_names(module, line, comprehension)
    small, kept = line.body[0], ""
    is_all = isinstance(small, cst.Assign) and small.value is comprehension and len(small.targets) == 1
    target = small.targets[0].target if is_all and isinstance(small, cst.Assign) else None
    if isinstance(target, cst.Name) and target.value not in names(module, [comprehension], ExpressionContext.LOAD):
        kept = target.value
    name = kept or fresh_name("results", {each.value for each in module.all(cst.Name)})
    first = statement(module.tree, f"{name} = []").with_changes(leading_lines=line.leading_lines)
    append = cst.Call(cst.Attribute(cst.Name(name), cst.Name("append")), [cst.Arg(comprehension.elt)])
    body = cst.IndentedBlock([cst.SimpleStatementLine([cst.Expr(append)])])
    loop = cst.For(turn.target, turn.iter, body)
    rest = line.with_changes(leading_lines=[]).deep_replace(comprehension, cst.Name(name))
    return SourceModule(replaced(module.tree, line, first, loop, *([] if kept else [rest])))


def _statement(module: SourceModule, comprehension: cst.ListComp) -> cst.SimpleStatementLine:
    """The statement around a comprehension before which it may as well be computed. Raises AnalysisRefused."""
    below: cst.CSTNode = comprehension
    for node in module.ancestors(comprehension):
        if isinstance(node, cst.SimpleStatementLine):
            block = module.parent(node)
            if len(node.body) == 1 and isinstance(block, (cst.IndentedBlock, cst.Module)):
                return node
            break
        is_first = not isinstance(node, cst.Call) or _comes_first(node, below)
        if not isinstance(node, (cst.Assign, cst.Return, cst.Expr, cst.Arg, cst.Call)) or not is_first:
            break
        below = node
    raise AnalysisRefused(
        _line(module, comprehension, "the comprehension is not the first that its statement computes")
    )


def _comes_first(call: cst.Call, argument: cst.CSTNode) -> bool:
    """Whether nothing else of a call is computed before one of its arguments."""
    before = call.args[: next((n for n, arg in enumerate(call.args) if arg is argument), 0)]
    values = [arg.value for arg in before]
    return bool(dotted(call.func)) and all(isinstance(value, _AT_ONCE) or dotted(value) for value in values)


def _check_names(module: SourceModule, line: cst.SimpleStatementLine, comprehension: cst.ListComp) -> None:
    """Raise AnalysisRefused where a name of the comprehension's own is another variable's in the scope of the loop."""
    own = module.enclosing(line, cst.FunctionDef, cst.ClassDef) or module.tree
    if isinstance(own, cst.ClassDef):
        raise AnalysisRefused(_line(module, line, "the comprehension is in the body of a class"))
    scope, inside = module.scope(line), set(module.inside(comprehension))
    target = [node for node in module.inside(comprehension.for_in.target) if isinstance(node, cst.Name)]
    for name in {node.value for node in target if module.context(node) is ExpressionContext.STORE}:
        for use in module.uses(name, own):
            if use not in inside and not _is_apart(module, use, scope):
                raise AnalysisRefused(_line(module, use, f"{name} is a variable beside the comprehension"))


def _is_apart(module: SourceModule, use: cst.Name, scope: Scope) -> bool:
    """Whether a name is bound in a function or comprehension within a scope, and so none of that scope's."""
    bound = [binding.scope for binding in module.bindings(use)]
    return bool(bound) and all(_is_within(each, scope) for each in bound)


def _is_within(inner: Scope, outer: Scope) -> bool:
    while inner is not inner.globals:
        inner = inner.parent
        if inner is outer:
            return True
    return False


def _line(module: SourceModule, node: cst.CSTNode, reason: str) -> str:
    return f"line {module.first_line(node)}: {reason}"
