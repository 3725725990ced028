"""Whether the changed program does the same where limits that only it has are smaller.

A number that is there for speed (rows a read, entries of a cache, threads) changes no result, whatever it is. One that
cuts data or losses off does, and no run here may come to it.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from unstall.prove import thresholds
from unstall.prove.conditions.other_sides import OtherSides, with_numbers
from unstall.prove.lines.sources import Change, ChangedSource
from unstall.prove.lines.syntax import called
from unstall.prove.trees import Sides, content_of

_BOUNDED = frozenset({"deque", "head", "islice", "min", "nlargest", "nsmallest"})
"""What is called with a number of how many there are at most."""
_IN_NAMES = ("max", "most", "limit", "cap")
"""In the names of arguments that are one."""
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def smaller_limits(change: Change) -> OtherSides | None:
    """The original as it is, and the change with its new limits as large as their square roots; None without any."""
    sides = change.sides
    changed = dict(sides.changed)
    told: list[str] = []
    more = _counts(source.after for source in change.sources) - _counts(source.before for source in change.sources)
    for source in change.sources:
        found = dict(_limits(source, more.keys()))
        if found:
            smaller = {node: math.isqrt(number) for node, number in found.items()}
            changed[Path(source.path)] = with_numbers(content_of(sides.changed, source.path), smaller)
            told += [f"{smaller[node]} for {number} in {source.place(node.lineno)}" for node, number in found.items()]
    where = f" with limits that only it has made smaller ({', '.join(told)})"
    return OtherSides(Sides(sides.original, changed, sides.label), where) if told else None


def _counts(trees: Iterable[ast.Module]) -> Counter[int]:
    """How often each number is in these: what has moved from one file into another is not new."""
    return Counter(number for tree in trees for number in map(_number, ast.walk(tree)) if number)


def _limits(source: ChangedSource, new: Container[int]) -> Iterator[tuple[ast.expr, int]]:
    """New numbers in its changed lines that may be limits."""
    changed = frozenset(source.lines)
    for node in ast.walk(source.after):
        for bound in _bounds(node):
            if bound.lineno in changed and _number(bound) in new:
                yield bound, _number(bound)


def _bounds(node: ast.AST) -> Sequence[ast.expr]:
    """What may say how many there are at most, of a part of the source."""
    if isinstance(node, ast.Slice):
        return [node.upper] if node.upper else []
    if isinstance(node, ast.Compare) and all(isinstance(operator, _ORDERS) for operator in node.ops):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and called(node) in _BOUNDED:
        return node.args
    if isinstance(node, ast.keyword) and any(part in (node.arg or "").lower() for part in _IN_NAMES):
        return [node.value]
    if isinstance(node, ast.arguments):
        return [*node.defaults, *filter(None, node.kw_defaults)]
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
        return node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return []


def _number(node: ast.AST) -> int:
    """A whole number that is large enough to be a limit that no run comes to; 0 of what is none."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int and value >= thresholds.LEAST_LIMIT else 0
