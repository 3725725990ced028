"""A pure function that is asked the same again and again: ``functools.lru_cache``.

A list cannot be looked up by its value. Where the program gives the function the same list at every call, and leaves
that as it is, the list is known by which one it is.
"""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.computing import function_around, impurity
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.optimize.unchanged import held_arguments
from unstall.text.units import percent

NAME = "memoize"
AREA: Area = "compute"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.05
_REPEATED = 0.6  # of the calls, assumed: the trial tells
_MAX_SIZE = 65536
REMEMBERED = '''class _Remembered:
    """Remembers a function's results, up to a gigabyte of arrays.

    ``lists``: places of arguments that are known by which list it is, as the program changes none of these.
    """

    def __init__(self, function, lists):
        self.function, self.lists, self.results, self.bytes = function, lists, {}, 0
        functools.update_wrapper(self, function)

    def __call__(self, *args):
        key = tuple([
            (list, id(one)) if place in self.lists and isinstance(one, list) else (type(one), one)
            for place, one in enumerate(args)
        ])
        if key in self.results:
            return self.results[key][1]
        result = self.function(*args)
        parts = result if isinstance(result, (tuple, list)) else [result]
        self.bytes += 1000 + sum([getattr(part, "nbytes", 0) for part in parts])
        if self.bytes < 1 << 30:
            self.results[key] = args, result  # the lists are held: no other one gets their id
        return result
'''


def propose(case: Case) -> list[Proposal] | Unfit:
    """The functions that the samples fell in, those that only compute with what they are given."""
    shares: dict[tuple[Path, str], tuple[float, int]] = {}
    for path, line, share in hot_lines(case):
        try:
            name = _function_at(ast.parse(case.sources.text(path)), line)
        except SourceError:
            continue
        if name is not None:
            total, _ = shares.get((path, name), (0.0, line))
            shares[(path, name)] = (total + share, line)
    found: list[Proposal] = []
    reason = "no function of the program's own takes a noticeable share"
    for (path, name), (share, line) in shares.items():
        if share < _MIN_SHARE:
            continue
        why_not = impurity(case.sources.text(path), line)
        if why_not is not None:
            reason = f"{name}: {why_not}"
            continue
        try:
            sources = with_cache(case.sources, path, name, line)
        except SourceError as error:
            reason = str(error)
            continue
        found.append(
            Proposal(
                NAME, f"{name} ({path.name}:{line}) remembers its results", EXACTNESS,
                predicted_without(share, _REPEATED),
                f"it takes {percent(share)} of the step; what it is asked is assumed to repeat",
                sources=sources, key=f"{path.name}:{name}", remembers=(f"{path}:{name}",),
            )
        )  # fmt: skip
    return found or Unfit(reason)


def _function_at(tree: ast.Module, line: int) -> str | None:
    function = function_around(tree, line)
    return function.name if function is not None else None


def with_cache(sources: Sources, path: Path, name: str, line: int) -> Sources:
    """The sources with the decorator on the function. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    function = found.function(name, line)
    if function is None:
        raise SourceError(f"{name} was not found again")
    decorator = cst.Decorator(cst.parse_expression(f"functools.lru_cache(maxsize={_MAX_SIZE}, typed=True)"))
    alone = found.around(function, cst.ClassDef, cst.FunctionDef) is None
    lists = held_arguments(ast.parse(sources.text(path)), name) if alone else set()
    if lists:
        places = tuple(sorted(lists))
        decorator = cst.Decorator(cst.parse_expression(f"functools.partial(_Remembered, lists={places})"))
    changed = function.with_changes(decorators=[decorator, *function.decorators])
    module = rewrite.replaced(found.module, function, changed)
    if lists:
        module = rewrite.with_definition(module, REMEMBERED)
    return sources.with_module(path, rewrite.with_import(module, "functools"))
