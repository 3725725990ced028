"""Whether the changed program does the same where constants of its files are others, as somebody may set them.

A run has one value of each. A short cut that is right for that one alone is wrong for who tries another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from unstall.prove import thresholds
from unstall.prove.conditions.other_sides import OtherSides, with_numbers
from unstall.prove.lines.sources import Change
from unstall.prove.lines.syntax import assigned
from unstall.prove.trees import Sides, content_of


def other_constants(change: Change) -> OtherSides | None:
    """Both sides with each number smaller that a file of the change names in capitals and asks for; None without any.

    Only those that both have alike.
    """
    original, changed = dict(change.sides.original), dict(change.sides.changed)
    names: set[str] = set()
    for source in change.sources:
        before, after = (dict(_constants(tree)) for tree in (source.before, source.after))
        asked = {node.id for node in ast.walk(source.before) if isinstance(node, ast.Name) and _is_load(node)}
        alike = {name for name in asked & before.keys() & after.keys() if _value(before[name]) == _value(after[name])}
        if alike:
            names |= alike
            for files, numbers in ((original, before), (changed, after)):
                smaller = {numbers[name]: _value(numbers[name]) * float(thresholds.CONSTANT) for name in alike}
                files[Path(source.path)] = with_numbers(content_of(files, source.path), smaller)
    where = f" with {', '.join(sorted(names))} {thresholds.CONSTANT:.2g} times as large"
    return OtherSides(Sides(original, changed, change.sides.label), where) if names else None


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names in capitals to which the module gives a number with a point, each with that."""
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) > 1:
            continue
        for name, number in assigned(node):
            if isinstance(name, ast.Name) and name.id.isupper() and _value(number):
                yield name.id, number


def _value(node: ast.expr) -> float:
    """0 of what is no such number."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, float) else 0.0


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)
