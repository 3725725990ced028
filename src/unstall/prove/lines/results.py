"""Functions that both sides have, of the same name, arguments and words of what they do, and that give something else.

This program may not notice: what it does with one result it may do with the other. Who else calls the function will.
So they are also given what runs have given them in another order, and what they are given must stay as it was.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unstall.child.trial.results import OVERWRITTEN, REARRANGED
from unstall.prove import thresholds
from unstall.prove.lines.sources import Change, ChangedSource
from unstall.prove.lines.syntax import FUNCTIONS, Function

Results = Mapping[tuple[str, str, str], Any]
"""(path, name of the function, digest of its arguments) → what it gave."""


def found_in(path: Path) -> Results:
    """What the child side has written (:mod:`unstall.child.trial.results`); nothing where that is nothing."""
    try:
        return {(str(file), str(name), str(given)): value for file, name, given, value in json.loads(path.read_text())}
    except (OSError, ValueError, TypeError):
        return {}


def plan_of(change: Change) -> dict[str, Any]:
    """Of a run in which they are looked at; empty where there are none."""
    functions = {source.path: names for source in change.sources if (names := [*_promised(source)])}
    return {"results": {"functions": functions}} if functions else {}


def first_other(original: Results, again: Results, changed: Results) -> str | None:
    """In words, the first that gives something else for the same; None where none does.

    Args:
        original: what functions of the original gave.
        again: the same under other seeds: what is another then depends on more than the arguments.
        changed: what those of the changed program gave.
    """
    for place, before in original.items():
        if place in changed and not alike(before, changed[place]) and alike(before, again.get(place, before)):
            path, name, given = place
            what = f"{name} ({Path(path).name})"
            if given.startswith(OVERWRITTEN):
                if changed[place]:
                    return f"{what} changes what it is given, which it did not"
                continue
            arguments = (
                "one of its arguments in another order" if given.startswith(REARRANGED) else "the same arguments"
            )
            return f"{what} gives something else than it did for {arguments}"
    return None


def alike(before: Any, after: Any) -> bool:
    """Whether two results are the same, but for rounding."""
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(alike, before, after))
    if isinstance(before, (int, float)) and isinstance(after, (int, float)):
        both_nan = math.isnan(before) and math.isnan(after)
        rounding = thresholds.SAME_RESULT
        return both_nan or before == after or math.isclose(before, after, rel_tol=rounding, abs_tol=rounding)
    return bool(before == after)


def _promised(source: ChangedSource) -> Iterator[str]:
    """Functions of the module with changed lines whose name, arguments and words both sides have."""
    before = {node.name: node for node in source.before.body if isinstance(node, FUNCTIONS)}
    for node in source.after.body:
        if isinstance(node, FUNCTIONS) and node.name in before:
            old = before[node.name]
            is_told = ast.get_docstring(old) is not None
            if is_told and ast.dump(old) != ast.dump(node) and _promise(old) == _promise(node):
                yield node.name


def _promise(function: Function) -> tuple[str, str | None]:
    return ast.dump(function.args), ast.get_docstring(function)
