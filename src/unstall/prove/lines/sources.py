"""The changed files of a program as Python, as they were and as they are, and what calls what in them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from unstall.prove.trees import Sides, content_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class ChangedSource(NamedTuple):
    """One of them."""

    path: str
    before: ast.Module
    """Of nothing where the original has no such file."""
    after: ast.Module
    lines: Sequence[int]
    """That the change has in it."""

    def place(self, line: int) -> str:
        """In words."""
        return f"{Path(self.path).name}:{line}"


def of_change(sides: Sides, lines: Mapping[str, Sequence[int]]) -> Iterator[ChangedSource]:
    """All that both sides' Python can be read of.

    ``lines``: the changed lines of each file.
    """
    originals = {str(path): before or b"" for path, before, _ in sides.differing}
    for path, changed in lines.items():
        try:
            before, after = ast.parse(originals.get(path, b"")), ast.parse(content_of(sides.changed, path))
            ast.unparse(before), ast.unparse(after)  # so that nobody who does it of a part need expect an error
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        yield ChangedSource(path, before, after, changed)


def called(call: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def reachable(
    names: set[str], functions: Mapping[str, Sequence[ast.AST]], used: Callable[[ast.AST], set[str]]
) -> set[str]:
    """Of these functions, those with one of these names, and all that they use.

    ``used``: the names that a function uses.
    """
    found: set[str] = set()
    left = [name for name in names if name in functions]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [other for function in functions[name] for other in used(function) if other in functions]
    return found
