"""Whether a program goes through its loader once only, as far as its source shows: then no sample is met again."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from unstall.diagnose import source
from unstall.records.measurements import SeamSite


def goes_through_once(sites: Iterable[SeamSite]) -> bool:
    """Whether the loop over the loader stands in no other loop, on any line that leads to it, or in one of one turn.

    Not so where it cannot be seen: a framework's loop, a file that does not parse, a number of epochs that is given.

    Args:
        sites: where the program begins an epoch of its loader.
    """
    sites = list(sites)
    return bool(sites) and all(map(_is_alone, sites))


def _is_alone(site: SeamSite) -> bool:
    own = source.syntax_tree(site.file)
    if own is None:
        return False
    around = source.around(own, source.LOOPS, site.line)
    outer = [loop for loop in around if not source.is_head(loop, site.line)]
    if len(outer) == len(around) or any(_repeats(own, loop) for loop in outer):
        return False
    for file, _, line in site.callers:
        tree = source.syntax_tree(file)
        if tree is None or any(_repeats(tree, loop) for loop in source.around(tree, source.LOOPS, line)):
            return False
    return True


def _repeats(tree: ast.Module, loop: ast.expr | ast.stmt) -> bool:
    """Whether a loop may have more than one turn: it has one if it goes over ``range(1)``, by that or another name."""
    call = loop.iter if isinstance(loop, ast.For) else None
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
    if not isinstance(call, ast.Call) or not is_range or len(call.args) != 1 or call.keywords:
        return True
    turns = call.args[0]
    return (_constant(tree, turns.id) if isinstance(turns, ast.Name) else getattr(turns, "value", None)) != 1


def _constant(tree: ast.Module, name: str) -> object:
    """What the top level binds a name to, if that is a literal and the file binds it nowhere else."""
    bound = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    given = [node for node in ast.walk(tree) if isinstance(node, ast.arg)]
    if sum(node.id == name for node in bound) != 1 or any(argument.arg == name for argument in given):
        return None
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            for target, value in _pairs(statement.targets[0], statement.value):
                if isinstance(target, ast.Name) and target.id == name and isinstance(value, ast.Constant):
                    return value.value
    return None


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What is bound to what by an assignment; of two tuples, item by item."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts)) if len(target.elts) == len(value.elts) else []
    return [(target, value)]
