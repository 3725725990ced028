"""A pure function that is asked the same again and again: ``functools.lru_cache``.

A list cannot be looked up by its value. Where the program gives the function the same list at every call, and leaves
that as it is, the list is known by which one it is. So is a long tuple; with any other list, the function computes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_functions
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.source.bindings import constant_arguments
from unstall.optimize.source.edit import replaced
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.purity import impurity
from unstall.optimize.source.toplevel import with_import, with_runtime
from unstall.optimize.thresholds import LEAST_SHARE, REMEMBERED_RESULTS, REMEMBERING_SAVES
from unstall.text.units import percent


class Memoize(Remedy):
    """The functions that the samples fell in, those that only compute with what they are given."""

    name = "memoize"
    brief = (
        "a pure function called again with the same arguments returns the remembered result; arguments may be lists "
        "that the program never changes"
    )
    needs = "a function of your own that only computes with plain values"
    patterns = ("input-bound", "host-bound", "environment-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            ((*function, share) for function, share in _shares(context).items() if share >= LEAST_SHARE),
            partial(_proposal, context),
            "no function of the program's own takes a noticeable share",
        )


def _shares(context: RemedyContext) -> dict[tuple[Path, cst.FunctionDef], float]:
    """Share of the step that each function's own lines hold up."""
    return {function: sum(of_line.values()) for function, of_line in hot_functions(context).items()}


def _proposal(context: RemedyContext, path: Path, function: cst.FunctionDef, share: float) -> Proposal:
    module, name = context.sources.module(path), function.name.value
    loader = context.measurement.loader
    file, line = loader.collate_at if loader is not None else ("", 0)
    if (context.user_file(file), line) == (path, module.first_line(function)):
        raise NotApplicable(f"{name}: the loader gives it a list, which has no value to look up")
    return Proposal(
        f"{name} ({path.name}:{module.first_line(function)}) remembers its results",
        speedup_without(share, REMEMBERING_SAVES),
        f"it takes {percent(share)} of the step; its arguments are assumed to repeat",
        sources=context.sources.with_module(path, with_memory(module, function)),
        key=context.key(path, module.full_name(function)),
        lines=Lines.of(path, module, function),
        memoized_functions=(f"{path}:{name}",),
    )


def with_memory(module: SourceModule, function: cst.FunctionDef) -> cst.Module:
    """The tree with a decorator on the function. Raises AnalysisRefused where it does more than compute."""
    why_not = impurity(module, function)
    if why_not is not None:
        raise AnalysisRefused(f"{function.name.value}: {why_not}")
    functools = module.alias("functools") or "functools"
    alone = module.enclosing(function, cst.ClassDef, cst.FunctionDef) is None
    lists = tuple(sorted(constant_arguments(module, function))) if alone else ()
    by_which = bool(lists) or _goes_through_argument(module, function)
    memory = (
        f"partial(_Remembered, lists={lists})" if by_which else f"lru_cache(maxsize={REMEMBERED_RESULTS}, typed=True)"
    )
    decorator = cst.Decorator(cst.parse_expression(f"{functools}.{memory}"))
    changed = replaced(module.tree, function, function.with_changes(decorators=[decorator, *function.decorators]))
    if by_which:
        return with_runtime(changed, "remembered")
    return with_import(changed, "functools") if functools == "functools" else changed


def _goes_through_argument(module: SourceModule, function: cst.FunctionDef) -> bool:
    """Whether it goes through what it is given, item by item: a list or a tuple, which may be long, then."""
    names = {parameter.name.value for parameter in (*function.params.params, *function.params.kwonly_params)}
    heads = (node.iter for node in module.inside(function.body) if isinstance(node, (cst.For, cst.CompFor)))
    given = [
        part for head in heads for part in ([arg.value for arg in head.args] if isinstance(head, cst.Call) else [head])
    ]
    return any(isinstance(node, cst.Name) and node.value in names for node in given)


REMEDY = Memoize()
