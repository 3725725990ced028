"""A statement for each model of a program, where it is whole: before its optimizer is made, or in eval mode."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from unstall.child.seams import modules
from unstall.optimize.context import RemedyContext
from unstall.optimize.observed import ObservedOptimizer
from unstall.optimize.source.edit import Edit, edited, followed_by, preceded_by, statement
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.module import SourceModule, dotted, method_name
from unstall.optimize.source.toplevel import with_import

_PARAMETERS = ("parameters", "named_parameters")

NEEDS = "a model with a name where your own code makes its optimizer, once, or calls its `eval()`"
"""For the documentation of a remedy."""


@dataclass(frozen=True)
class _Place:
    """A statement at which models are whole, and have these names."""

    path: Path
    statement: cst.CSTNode
    models: Sequence[str]
    put: Callable[[Sequence[Any]], Edit]
    """Before or after it."""


def with_statements(
    context: RemedyContext, write: Callable[[str, str], str], *, uses_torch: bool = False
) -> tuple[Sources, str]:
    """The sources with a statement for each model, and which these are.

    Args:
        context: the program.
        write: the statement, from the model's name and that of torch in its file.
        uses_torch: it names torch, which is imported where it is not.

    Raises:
        NotApplicable: it is not plain which models there are, or they have no names.
    """
    places = _before_optimizers(context) if context.trains else [_after_eval(context)]
    edits: defaultdict[Path, dict[cst.CSTNode, Edit]] = defaultdict(dict)
    titles, sources = [], context.sources
    for place in places:
        module = sources.module(place.path)
        statements = [write(model, module.alias("torch") or "torch") for model in place.models]
        edits[place.path][place.statement] = place.put([statement(module.tree, text) for text in statements])
        at = f"{place.path.name}:{module.first_line(place.statement)}"
        titles += [f"{text} ({at})" for text in statements]
    for path, of_file in edits.items():
        module = sources.module(path)
        tree = edited(module.tree, of_file)
        needs_torch = uses_torch and module.alias("torch") is None
        sources = sources.with_module(path, with_import(tree, "torch") if needs_torch else tree)
    return sources, " and ".join(titles)


def _before_optimizers(context: RemedyContext) -> list[_Place]:
    """Where the optimizers are made. Raises NotApplicable unless each is made once, of models with names."""
    optimizers = context.runtime.optimizers
    if not optimizers:
        raise NotApplicable("the program makes no optimizer of torch's, by which its model is known")
    if max(Counter(optimizer.call for optimizer in optimizers).values()) > 1:
        raise NotApplicable("an optimizer is made again and again, each of another model")
    names: defaultdict[tuple[Path, cst.CSTNode], list[str]] = defaultdict(list)
    for optimizer in optimizers:
        path, line, models = _models_of(context, optimizer)
        names[path, line] += models
    return [_Place(path, line, tuple(dict.fromkeys(models)), preceded_by) for (path, line), models in names.items()]


def _models_of(context: RemedyContext, optimizer: ObservedOptimizer) -> tuple[Path, cst.CSTNode, list[str]]:
    """The file and the statement that make an optimizer, and the models of whose parameters: the outermost.

    They are in the call, or where a name that it is given is set. Raises NotApplicable.
    """
    path, module, call = context.locate(optimizer.call, optimizer.type)
    found = list(_with_parameters(module, call))
    for argument in call.args:
        if not found and isinstance(argument.value, cst.Name):
            found += [name for line in _set_at(module, argument.value) for name in _with_parameters(module, line)]
    models = [name for name in found if not any(name.startswith(f"{other}.") for other in found)]
    if not models or not all(models) or "self" in models:
        raise NotApplicable(f"{path.name}:{module.first_line(call)}: the optimizer's model has no name there")
    line = module.statement(call)
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) > 1:  # the model may be made on it, too
        raise NotApplicable(f"{path.name}:{module.first_line(call)}: the line makes an optimizer among other things")
    return path, line, models


def _with_parameters(module: SourceModule, node: cst.CSTNode) -> Iterator[str]:
    """What ``parameters()`` is called of in a node, as it is spelled."""
    for inner in module.inside(node):
        if isinstance(inner, cst.Call) and method_name(inner) in _PARAMETERS:
            yield dotted(cst.ensure_type(inner.func, cst.Attribute).value)


def _set_at(module: SourceModule, name: cst.Name) -> Iterator[cst.CSTNode]:
    """The statements that set a name where it stands."""
    for binding in module.bindings(name):
        node = getattr(binding, "node", None)
        line = module.statement(node) if node is not None else None
        if isinstance(line, cst.SimpleStatementLine):
            yield line


def _after_eval(context: RemedyContext) -> _Place:
    """Where the one model is put in eval mode, in a file that calls a model. Raises NotApplicable."""
    called = (context.user_file(site.file) for site in context.measurement.sites if site.seam == modules.FORWARD.event)
    paths = dict.fromkeys(path for path in called if path is not None)
    found = [place for path in paths for place in _evaluated(path, context.sources.module(path))]
    if len(found) != 1 or not all(found[0].models):
        raise NotApplicable("the program's own code does not put one model in eval mode, as model.eval() does")
    return found[0]


def _evaluated(path: Path, module: SourceModule) -> Iterator[_Place]:
    """The statements of a file that put a model in eval mode; of one without a name, with an empty one."""
    for call in module.all(cst.Call):
        if method_name(call) == "eval" and not call.args:
            yield _Place(path, module.statement(call), (_name_of(module, call),), followed_by)


def _name_of(module: SourceModule, call: cst.Call) -> str:
    """What a method returns is bound to, if it is its own object; or whose it is, where the call is all there is."""
    above = module.parent(call)
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        return dotted(above.targets[0].target)
    return dotted(cst.ensure_type(call.func, cst.Attribute).value) if isinstance(above, cst.Expr) else ""
