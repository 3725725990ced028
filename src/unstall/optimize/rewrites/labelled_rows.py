"""Losses that ignore rows without a label, and the same where the layers before are not given these rows either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.bindings import assigned
from unstall.optimize.source.edit import Edit, both, edited, keyword, preceded_by, put, statement
from unstall.optimize.source.module import SourceModule, dotted, is_reference, number_of, root
from unstall.optimize.source.names import fresh_name

_FUNCTION, _CLASS = "torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"
_KNOWN = ("ignore_index", "weight", "label_smoothing", "reduction")
_SUMS = ("mean", "sum")
_FLATTENS = ("flatten", "view", "reshape")
_IGNORED = "-100"  # torch's default
_REPEATED = (cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


@dataclass(frozen=True)
class LabelledLoss:
    """A loss of what layers make of a batch, one row for each label."""

    layers: cst.Call
    """Their call, with one argument."""
    labels: cst.BaseExpression
    """As they are before they are flattened."""
    ignored: str
    """The label of the rows without one, as the source can spell it."""


def labelled_losses(module: SourceModule, line: int) -> Iterator[LabelledLoss]:
    """Those whose layers are called on a line."""
    for call in module.all(cst.Call):
        found = _labelled(module, call)
        if found is not None and module.is_on(found.layers, line):
            yield found


def selected(module: SourceModule, found: LabelledLoss) -> cst.Module:
    """The tree in which the layers are given the rows with a label alone."""
    name = fresh_name("has_label", {node.value for node in module.all(cst.Name)})
    labels, given = module.code(found.labels), found.layers.args[0].value
    rows = f"{module.code(given)}[{name}]" if is_reference(given) else f"({module.code(given)})[{name}]"
    here = module.statement(found.layers)
    before = statement(module.tree, f"{name} = {labels} != {found.ignored}")
    edits: dict[cst.CSTNode, Edit] = {
        found.labels: put(cst.parse_expression(f"{labels}[{name}]")),
        given: put(cst.parse_expression(rows)),
    }
    edits[here] = both(edits.get(here), preceded_by([before]))
    return edited(module.tree, edits)


def _labelled(module: SourceModule, call: cst.Call) -> LabelledLoss | None:
    ignored = _ignored(module, call)
    pair = [arg.value for arg in call.args[:2] if arg.keyword is None and not arg.star]
    flattened = [_flattened(value) for value in pair]
    if ignored is None or len(flattened) != 2:
        return None
    made, labels = flattened
    if made is None or labels is None or not is_reference(labels, cst.SimpleString, cst.Integer):
        return None
    layers = _layers(module, call, made)
    if layers is None or not _stay(module, labels, layers, call):
        return None
    return LabelledLoss(layers, labels, ignored)


def _ignored(module: SourceModule, call: cst.Call) -> str | None:
    """What the labels are that a loss ignores; None where the call is no such loss, or one that says each row's."""
    if module.name(call) == _FUNCTION and len(call.args) > 1:
        settings, options = call, call.args[2:]
    else:
        made = _made(module, call.func)
        if made is None or len(call.args) != 2:
            return None
        settings, options = made, made.args
    names = [arg.keyword.value if arg.keyword is not None else "" for arg in options]
    reduction, ignored = keyword(settings, "reduction"), keyword(settings, "ignore_index")
    sums = reduction is None or (
        isinstance(reduction.value, cst.SimpleString) and reduction.value.evaluated_value in _SUMS
    )
    if not sums or not set(names) <= set(_KNOWN):
        return None
    if ignored is None:
        return _IGNORED
    if number_of(ignored.value) is None and settings is not call and dotted(call.func):
        return f"{module.code(call.func)}.ignore_index"  # the name may mean nothing here
    is_simple = number_of(ignored.value) is not None or is_reference(ignored.value)
    return module.code(ignored.value) if is_simple else None


def _made(module: SourceModule, function: cst.BaseExpression) -> cst.Call | None:
    """The call that makes the module of a loss that is called; None where that is not seen, or may be another.

    It is set in the function that calls it, else in its class, else in its file.
    """
    if isinstance(function, cst.Call):
        return function if module.name(function) == _CLASS else None
    spelled = dotted(function)
    around = (module.enclosing(function, cst.FunctionDef), module.enclosing(function, cst.ClassDef), module.tree)
    for part in (part for part in around if part is not None and spelled):
        made = [
            line.value
            for line in module.inside(part)
            if isinstance(line, cst.Assign) and any(dotted(target.target) == spelled for target in line.targets)
        ]
        if made:
            only = made[0] if len(made) == 1 else None
            return only if isinstance(only, cst.Call) and module.name(only) == _CLASS else None
    return None


def _flattened(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What has its rows put one after the other here; None where nothing has."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    how, first = node.func.attr.value, node.args[0].value if node.args else None
    if how not in _FLATTENS or (how != "flatten" and (first is None or number_of(first) != -1)):
        return None
    return node.func.value


def _layers(module: SourceModule, loss: cst.Call, made: cst.BaseExpression) -> cst.Call | None:
    """The call whose result is used for a loss and nothing else; None where there is none with one argument."""
    here = module.statement(loss)
    if isinstance(made, cst.Name):
        bound = _bound_for(module, made, loss)
        if bound is None:
            return None
        made, here = bound
    if not isinstance(made, cst.Call) or not isinstance(here, cst.SimpleStatementLine):
        return None
    is_plain = len(made.args) == 1 and made.args[0].keyword is None and not made.args[0].star
    is_called = bool(dotted(made.func)) and not module.name(made).startswith(("torch.", "builtins."))
    return made if is_plain and is_called and module.enclosing(made, *_REPEATED) is None else None


def _bound_for(
    module: SourceModule, name: cst.Name, loss: cst.Call
) -> tuple[cst.BaseExpression, cst.SimpleStatementLine] | None:
    """What a name stands for that one statement of the loss's block binds, for the loss alone, and the statement."""
    uses = module.uses(name.value, module.enclosing(loss, cst.FunctionDef))
    bound = [node for node in uses if module.context(node) is ExpressionContext.STORE]
    within = module.inside(loss.args[0])
    if len(bound) != 1 or any(node not in within for node in uses if node is not bound[0]):
        return None
    value, line = assigned(module, bound[0]), module.statement(bound[0])
    if value is None or not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
        return None
    return (value, line) if module.parent(line) is module.parent(module.statement(loss)) else None


def _stay(module: SourceModule, labels: cst.BaseExpression, layers: cst.Call, loss: cst.Call) -> bool:
    """Whether labels are the same when layers are called as at the loss, which is in the same block."""
    first, last = module.first_line(layers), module.last_line(loss)
    return not any(
        module.context(node) is ExpressionContext.STORE and first <= module.first_line(node) <= last
        for node in module.uses(root(labels), module.enclosing(loss, cst.FunctionDef))
    )
