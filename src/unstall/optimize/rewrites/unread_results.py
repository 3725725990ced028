"""Calls in loops whose results nobody reads: what they are bound to is bound anew first, and they do nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.bindings import may_change_in_place, names_of, only_names
from unstall.optimize.source.edit import edited, keyword, put
from unstall.optimize.source.effects import Effect, changes_argument, effect_of
from unstall.optimize.source.module import SourceModule, dotted, method_name, root
from unstall.optimize.thresholds import PURE_DEPTH

_COMPUTING = ("numpy", "torch")
"""Libraries whose own functions give a value and do nothing else, but for those below; in their modules are others."""
_ALL_COMPUTING = (
    "numpy.linalg", "numpy.fft", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional", "scipy",
    "sklearn.metrics", "torchmetrics.functional", "math", "statistics",
)  # fmt: skip
"""The same of modules, and of those in them."""
_ELSE = (
    "save", "set", "seed", "manual_seed", "use_", "print", "dump", "show", "compile", "write", "memmap", "rvs",
    "apply_", "fromfunction", "piecewise",
)  # fmt: skip
"""How those functions of them begin that are called for something else, or call a function that they are given."""
_DIFFERS = Effect.RANDOM | Effect.CLOCK | Effect.ORDERED
_OF_CONTAINERS = {name for kind in (str, list, dict) for name in dir(kind) if not name.startswith("_")}
_OF_VALUES = {
    *_OF_CONTAINERS, "detach", "cpu", "numpy", "item", "tolist", "float", "double", "long", "int",
    "bool", "sum", "mean", "std", "var", "min", "max", "argmax", "argmin", "argsort", "any", "all", "sigmoid", "tanh",
    "softmax", "log_softmax", "exp", "sqrt", "abs", "pow", "norm", "clamp", "eq", "ne", "gt", "lt", "ge", "le",
    "view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "transpose", "permute", "size", "dim", "numel",
    "astype", "cumsum", "dot", "topk", "gather", "nonzero", "unique", "bincount", "round",
}  # fmt: skip
"""Methods of texts, containers, arrays and tensors."""
_SPEAKS = (cst.Global, cst.Nonlocal, cst.Yield, cst.Await, cst.Del, cst.Raise, cst.Assert, cst.With, cst.Try)
"""What a function that only computes has none of: by an error, too, it would tell something."""
_LEAVES = (cst.Break, cst.Continue, cst.Return)
_SEES_ALL = ("builtins.locals", "builtins.globals", "builtins.vars", "builtins.eval", "builtins.exec")


class UnreadCall(NamedTuple):
    """One of them."""

    line: cst.SimpleStatementLine
    function: cst.FunctionDef
    """What it calls."""


def unread_calls(module: SourceModule) -> Iterator[UnreadCall]:
    """Lines of loops that only bind names to what a function or method of the module gives."""
    if any(module.name(call) in _SEES_ALL for call in module.all(cst.Call)):
        return
    for line in module.all(cst.SimpleStatementLine):
        bound = _bound_to_call(line)
        if bound is None:
            continue
        names, call = bound
        function = _called(module, call)
        if function is not None and _only_computes(module, call, 0) and _is_bound_anew(module, line, names):
            yield UnreadCall(line, function)


def without(module: SourceModule, call: UnreadCall) -> cst.Module:
    """The module without the line, and without an ``if`` that has nothing else in it and only compares."""
    gone: cst.CSTNode = call.line
    block = module.parent(gone)
    while isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
        above = module.parent(block)
        if not isinstance(above, cst.If) or above.orelse is not None or _calls(module, above.test):
            return edited(module.tree, {gone: put(cst.SimpleStatementLine([cst.Pass()]))})
        gone, block = above, module.parent(above)
    return edited(module.tree, {gone: put()})


def _bound_to_call(line: cst.SimpleStatementLine) -> tuple[set[str], cst.Call] | None:
    """The names that a line binds to what a call gives; None where it does anything else."""
    only = line.body[0] if len(line.body) == 1 else None
    if not isinstance(only, cst.Assign) or len(only.targets) != 1 or not isinstance(only.value, cst.Call):
        return None
    names = only_names(only.targets[0].target)
    return ({*names}, only.value) if names else None


# ------------------------------------------------------------------ whether nobody reads it


def _is_bound_anew(module: SourceModule, line: cst.SimpleStatementLine, names: set[str]) -> bool:
    """Whether a loop around a line does not read these names, and what comes after it binds them all first."""
    function = module.enclosing(line, cst.FunctionDef)
    if _is_seen_elsewhere(module, line, names):
        return False
    around = list(module.ancestors(line))
    around = around[: around.index(function)] if function is not None else around
    if any(isinstance(node, (cst.Try, cst.TryStar)) or _suppresses(node) for node in around):
        return False
    for loop in (node for node in around if isinstance(node, (cst.For, cst.While))):
        if loop.orelse is not None or _reads(module, loop, names):
            return False
        if _follows_a_binding(module, loop, names):
            return True
    return False


def _follows_a_binding(module: SourceModule, loop: cst.For | cst.While, names: set[str]) -> bool:
    """Whether the statements after a loop, in its block, bind these names before one reads any or leaves the block."""
    block = getattr(module.parent(loop), "body", ())
    after = list(block)[list(block).index(loop) + 1 :]
    for statement in after:
        if _reads(module, statement, names) or any(isinstance(node, _LEAVES) for node in module.inside(statement)):
            return False
        only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        targets = only.targets if isinstance(only, cst.Assign) else ()
        if any(names <= names_of(target.target) for target in targets):
            return True
    return False


def _reads(module: SourceModule, node: cst.CSTNode, names: set[str]) -> bool:
    return any(module.context(use) is not ExpressionContext.STORE for name in names for use in module.uses(name, node))


def _is_seen_elsewhere(module: SourceModule, line: cst.SimpleStatementLine, names: set[str]) -> bool:
    """Whether another scope reads one of the names, or a statement says that it is another scope's."""
    scope = module.scope(line)
    declared = [node.names for node in module.all(cst.Global)] + [node.names for node in module.all(cst.Nonlocal)]
    if any(item.name.value in names for items in declared for item in items):
        return True
    uses = (use for name in names for use in module.uses(name))
    return any(module.scope(use) is not scope and scope in _scopes_around(module.scope(use)) for use in uses)


def _scopes_around(scope: object) -> Iterator[object]:
    """The scopes in which a scope looks a name up, the global one last."""
    while (parent := getattr(scope, "parent", None)) is not None and parent is not scope:
        yield parent
        scope = parent


def _suppresses(node: cst.CSTNode) -> bool:
    """Whether it is a ``with`` that goes on after an error."""
    return isinstance(node, cst.With) and any("suppress" in dotted(_func(item.item)) for item in node.items)


def _func(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.func if isinstance(node, cst.Call) else node


# ------------------------------------------------------------------ whether it does nothing else


def _calls(module: SourceModule, node: cst.CSTNode) -> list[cst.Call]:
    return [inner for inner in module.inside(node) if isinstance(inner, cst.Call)]


def _called(module: SourceModule, call: cst.Call) -> cst.FunctionDef | None:
    """The function of the module that a call is of: a method by its name, if no other class has one."""
    if isinstance(call.func, cst.Name):
        is_bound_once = len(module.bindings(call.func)) == 1
        return module.top_level(cst.FunctionDef, call.func.value) if is_bound_once else None
    if not isinstance(call.func, cst.Attribute) or _is_imported(module, call):
        return None
    name = call.func.attr.value
    found = [each for each in module.all(cst.FunctionDef) if each.name.value == name]
    of_class = module.enclosing(found[0], cst.ClassDef, cst.FunctionDef) if len(found) == 1 else None
    return found[0] if isinstance(of_class, cst.ClassDef) else None


def _is_imported(module: SourceModule, call: cst.Call) -> bool:
    return root(call.func) in module.imports


def _only_computes(module: SourceModule, call: cst.Call, depth: int) -> bool:
    """Whether a call gives a value, as far as the source shows, and does nothing else."""
    arguments = [inner for arg in call.args for inner in _calls(module, arg.value)]
    if depth > PURE_DEPTH or not all(_only_computes(module, inner, depth) for inner in arguments):
        return False
    function = _called(module, call)
    if function is not None:
        return not function.decorators and not function.asynchronous and _body_only_computes(module, function, depth)
    name = module.name(call)
    if name.startswith("builtins."):
        key = keyword(call, "key")
        return bool(effect_of(name) & Effect.COMPUTES) and (key is None or isinstance(key.value, cst.Lambda))
    if name and _is_imported(module, call):
        return _is_computing(name) and not _is_told_where(call)
    method = method_name(call)
    acts = _DIFFERS | Effect.ACTS | Effect.MUTATES
    is_of_value = method in _OF_VALUES and not changes_argument(f".{method}") and not effect_of(f".{method}") & acts
    return is_of_value and not _is_told_where(call)


def _is_computing(name: str) -> bool:
    """Whether a library's function gives a value and does nothing else."""
    head, _, last = name.rpartition(".")
    is_of_module = any(head == module or head.startswith(f"{module}.") for module in _ALL_COMPUTING)
    does_else = last.startswith(_ELSE) or changes_argument(name) or bool(effect_of(name) & _DIFFERS)
    return (is_of_module or head in _COMPUTING) and not does_else


def _is_told_where(call: cst.Call) -> bool:
    """Whether a call says what its result is put into."""
    return keyword(call, "out") is not None or keyword(call, "inplace") is not None


def _body_only_computes(module: SourceModule, function: cst.FunctionDef, depth: int) -> bool:
    """Whether a function changes nothing but what it has made itself, and tells nothing but by its result."""
    inside = module.inside(function.body)
    own = {
        name
        for node in inside
        if isinstance(node, cst.Assign) and not isinstance(node.value, (cst.Name, cst.Attribute, cst.Subscript))
        for each in node.targets
        for name in names_of(each.target)
    }
    for node in inside:
        if isinstance(node, _SPEAKS):
            return False
        if isinstance(node, (cst.Attribute, cst.Subscript)) and module.context(node) is ExpressionContext.STORE:
            return False
        is_given = isinstance(node, cst.Name) and node.value not in own and node.value not in module.imports
        if is_given and may_change_in_place(module, node):  # np.sort is no method of np
            return False
        if isinstance(node, cst.Call) and not _only_computes(module, node, depth + 1):
            return False
    return True
