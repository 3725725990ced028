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
from unstall.optimize.purity import Purity, attributes_read
from unstall.optimize.purity import names as names_of
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.optimize.unchanged import held_arguments
from unstall.units import percent

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
_MUTATING = {
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "clear",
    "sort",
    "reverse",
    "update",
    "add",
    "write",
    "fill",
}


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


def impurity(text: str, line: int, *, arguments_needed: bool = True) -> str | None:
    """Why the function around a line may not be remembered; None when it may, as far as the source tells."""
    tree = ast.parse(text)
    function = _function(tree, line)
    if function is None:
        return "it is in no function"
    cls = next((one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and function in one.body), None)
    arguments = function.args
    if function.decorator_list or arguments.vararg or arguments.kwarg or function.name.startswith("__"):
        return "it is decorated, special, or takes any number of arguments"
    if arguments_needed and not (arguments.args[1:] if cls else arguments.args):
        return "it takes no arguments"
    if any(
        isinstance(base, (ast.Name, ast.Attribute)) and "Module" in ast.unparse(base)
        for base in (cls.bases if cls else [])
    ):
        return "it belongs to a model"
    purity = Purity(tree, cls or ast.ClassDef(name="", bases=[], keywords=[], body=[], decorator_list=[]))
    names = {argument.arg for argument in arguments.args}
    if not all(purity.is_steady(statement, names) for statement in function.body) or purity.written:
        return purity.reason or "it sets attributes"
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function)):
        return "it returns nothing"
    given = _object_among(function, names - {"self"})
    if given is not None:
        return f"{given} is more than a plain value"
    fresh = set(names_of([function], ast.Store))
    for node in ast.walk(function):
        changed = _changed(node)
        if changed is not None and not (isinstance(changed, ast.Name) and changed.id in fresh):
            return f"it changes {ast.unparse(changed)}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "next"):
            return f"it calls {ast.unparse(node.func)}"
    if cls is not None and attributes_read(function.body) & purity.changing_attributes():
        return "it reads what other methods change"
    return None


def _object_among(function: ast.FunctionDef, arguments: set[str]) -> str | None:
    """An argument that has attributes other than those of strings: an object, whose content may change."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id in arguments and not hasattr(str, node.attr):
            return node.value.id
    return None


def _changed(node: ast.AST) -> ast.expr | None:
    """What a node changes in place, if it does."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATING:
        return node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node.value
    return None


def _function_at(tree: ast.Module, line: int) -> str | None:
    function = _function(tree, line)
    return function.name if function is not None else None


def _function(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The innermost function around a line."""
    holding = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(holding, key=lambda node: node.lineno, default=None)


def with_cache(sources: Sources, path: Path, name: str, line: int) -> Sources:
    """The sources with the decorator on the function. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    function = found.function(name, line)
    if function is None:
        raise SourceError(f"{name} was not found again")
    decorator = cst.Decorator(cst.parse_expression(f"functools.lru_cache(maxsize={_MAX_SIZE})"))
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
